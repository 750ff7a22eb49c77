//! What a prompt template may use. An override is the user's own, but no template may end the sidecar by asking for
//! more memory than the machine has. So features that make a long text out of a short one are left out, and the
//! rendered text is bounded.

use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value};

/// The largest number of bytes that all values in one rendering may have together. The longest document has a quarter
/// of that.
const MAX_RENDERED: usize = 4 * 1024 * 1024;
/// Longest template, in bytes. This and [`FUEL`] limit how much of its own text a template can write.
const MAX_SOURCE: usize = 16 * 1024;
/// The largest number of steps that a template may take; listing the 256 tasks of a handoff takes some 2,000.
const FUEL: u64 = 10_000;
/// The name under which a rendering counts the bytes of its values.
const MADE: &str = "made";
/// Filters that can make a long text out of a short one. tasuki has its own `join` and `replace`.
const UNFIT: [&str; 23] = [
    "attr",
    "batch",
    "chain",
    "e",
    "escape",
    "format",
    "groupby",
    "indent",
    "join",
    "map",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "safe",
    "select",
    "selectattr",
    "slice",
    "split",
    "sum",
    "tojson",
    "urlencode",
    "zip",
];
/// The only statements that a template may use: none of them keeps a text for later.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

pub(super) fn environment() -> Environment<'static> {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_fuel(Some(FUEL));
    UNFIT.iter().for_each(|name| templates.remove_filter(name));
    ["range", "dict", "debug", "namespace"].iter().for_each(|name| templates.remove_global(name));
    templates.set_formatter(write);
    templates.add_filter("join", join);
    templates.add_filter("replace", replace);
    templates
}

/// Why a template's source can't be taken, if it can't: a statement or an operator that it must not use.
pub(super) fn fault(source: &str) -> Option<String> {
    if source.len() > MAX_SOURCE {
        return Some(format!("has {} bytes; at most {MAX_SOURCE} are allowed", source.len()));
    }
    let mut rest = source;
    loop {
        let at = ["{{", "{%", "{#"].iter().filter_map(|begin| rest.find(begin)).min()?;
        let (kind, inside) = (&rest[at..at + 2], &rest[at + 2..]);
        if kind == "{#" {
            rest = &inside[inside.find("#}")?..];
            continue;
        }
        if kind == "{%" {
            let word = inside.trim_start_matches(['-', '+']).trim_start();
            let word = &word[..word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(word.len())];
            if !STATEMENTS.contains(&word) {
                return Some(format!("uses {{% {word} %}}; a template may use only {}", STATEMENTS.join(", ")));
            }
        }
        match skip(inside, if kind == "{%" { "%}" } else { "}}" }) {
            Ok(end) => rest = &inside[end?..],
            Err(sign) => {
                return Some(format!("uses {sign:?} between {kind} and its end; a template may not join texts there"));
            }
        }
    }
}

/// Finds the end of an expression; none if it has none, which the compiler reports. An operator that makes texts longer
/// is an error, and so is a brace, which would hide the end.
fn skip(inside: &str, end: &str) -> Result<Option<usize>, char> {
    let mut quote = None;
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(chars.next()),
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, _) if inside[at..].starts_with(end) => return Ok(Some(at)),
            (None, '+') if at == 0 || inside[at + 1..].starts_with(end) => {}
            (None, '~' | '*' | '+' | '{') => return Err(c),
            (None, _) => {}
        }
    }
    Ok(None)
}

/// Writes a value out, as long as there is room for it.
fn write(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let text = value.to_string();
    let before = state.get_temp(MADE).and_then(|made| usize::try_from(made).ok()).unwrap_or(0);
    let made = before.saturating_add(text.len());
    if made > MAX_RENDERED {
        return Err(too_long());
    }
    state.set_temp(MADE, Value::from(made));
    out.write_str(&text).map_err(|_| too_long())
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidOperation, "the rendered text is longer than 4 MiB")
}

/// `list | join(", ")`.
fn join(list: &Value, between: Option<String>) -> Result<String, Error> {
    let between = between.unwrap_or_default();
    let mut text = String::new();
    for (at, one) in list.try_iter()?.enumerate() {
        if at > 0 {
            text.push_str(&between);
        }
        text.push_str(&one.to_string());
        if text.len() > MAX_RENDERED {
            return Err(too_long());
        }
    }
    Ok(text)
}

/// `text | replace("from", "to")`.
fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let longer = text.matches(from).count().saturating_mul(to.len()).saturating_add(text.len());
    if longer > MAX_RENDERED {
        return Err(too_long());
    }
    Ok(text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::prompts::Prompts;
    use std::collections::BTreeMap;

    /// A template is the user's own data, but it must not be able to end the sidecar, as a failed allocation would.
    #[test]
    fn a_template_can_not_take_all_memory() {
        let doubling = "{% set x = 'xxxxxxxxxxxxxxxx' %}".to_owned() + &"{% set x = x ~ x %}".repeat(22) + "{{ x }}";
        let captured = "{% set x %}xxxxxxxxxxxxxxxx{% endset %}".to_owned()
            + &"{% set x %}{{ x }}{{ x }}{% endset %}".repeat(22)
            + "{{ x }}";
        for bomb in [
            "{{ '%100000000d'|format(1) }}",
            "{{ 'x\n'|indent(100000000) }}",
            "{{ 'x' * 100000000 }}",
            "{{ tasks|batch(100000000, 'x')|length }}",
            "{{ document|default('0123456789')|join('0123456789'|join('0123456789'|join('0123456789'|join('0123456789'|join('0123456789'|join('0123456789'|join('0123456789'))))))) }}",
            "{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(22) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
            doubling.as_str(),
            captured.as_str(),
        ] {
            let overrides = BTreeMap::from([("briefing".to_owned(), bomb.to_owned())]);
            let error = Prompts::new(&overrides).err().unwrap_or_else(|| panic!("it was taken: {bomb:.80}"));
            assert!(error.to_string().starts_with("data/prompts/briefing.md: "), "{error}");
        }
    }

    #[test]
    fn trimming_loops_joins_and_defaults_work_in_templates() {
        let reason = "r ".repeat(3);
        for (source, made) in [
            (
                "{# ~ #}{{ reason|trim }}{%- if tasks +%}\n{%- for t in tasks -%} {{ t|upper }}{%- endfor %}{% endif %}",
                "r r rAB",
            ),
            ("{{ tasks|join('~*') }} {{ '}}'|replace('}', '+') }} {{ tasks|length }}", "a~*b ++ 2"),
            ("{{ missing|default(\"none's\") }}", "none's"),
        ] {
            assert_eq!(fault(source), None, "{source}");
            let mut templates = environment();
            templates.add_template_owned("t", source.to_owned()).expect("it parses");
            let template = templates.get_template("t").expect("there");
            let context = minijinja::context! { reason => &reason, tasks => vec!["a", "b"] };
            assert_eq!(template.render(context).expect("it renders"), made);
        }
        assert!(fault("{% macro x() %}").is_some_and(|why| why.contains("macro")));
    }

    #[test]
    fn the_output_of_a_template_is_bounded() {
        let mut templates = environment();
        templates.add_template_owned("t", "{% for t in text %}{{ text }}{% endfor %}".to_owned()).expect("it parses");
        let template = templates.get_template("t").expect("there");
        assert!(template.render(minijinja::context! { text => "x".repeat(4_000) }).is_err());
        templates.add_template_owned("j", "{{ text|join(text) }}".to_owned()).expect("it parses");
        let template = templates.get_template("j").expect("there");
        assert!(template.render(minijinja::context! { text => "x".repeat(4_000) }).is_err());
    }
}
