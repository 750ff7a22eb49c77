//! The agent CLIs: where they are installed, and how a private home is furnished for each as its user would have done
//! it: logged in, through the first-run dialogs, with hooks of the user's own, and nothing of tasuki's.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The key that every CLI is given; the scripted model takes any.
const KEY: &str = "sk-test-0123456789-not-a-real-key";

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cli {
    Claude,
    Codex,
    Pi,
    Gemini,
    Opencode,
}

/// Those that scenes are played with.
pub(crate) const ALL: [Cli; 3] = [Cli::Claude, Cli::Codex, Cli::Pi];
/// Those that texts are delivered to.
pub(crate) const EVERY: [Cli; 5] = [Cli::Claude, Cli::Codex, Cli::Pi, Cli::Gemini, Cli::Opencode];

impl Cli {
    /// Its name: that of its profile, and of its folder in the cache.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cli::Claude => "claude",
            Cli::Codex => "codex",
            Cli::Pi => "pi",
            Cli::Gemini => "gemini",
            Cli::Opencode => "opencode",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Cli> {
        EVERY.into_iter().find(|cli| cli.name() == name)
    }

    /// The folder that its program lies in.
    pub(crate) fn programs(self) -> PathBuf {
        let cache = std::env::var_os("TASUKI_AGENTS_CACHE").expect("scripts/agents-e2e names the cache");
        PathBuf::from(cache).join(self.name()).join("node_modules/.bin")
    }

    /// The command that begins a new session in the same process.
    pub(crate) fn new_session(self) -> &'static str {
        match self {
            Cli::Claude | Cli::Gemini => "/clear",
            Cli::Codex | Cli::Pi | Cli::Opencode => "/new",
        }
    }

    /// The files that the user has settled everything in; tasuki must leave them as they are.
    pub(crate) fn settings(self, home: &Path) -> Vec<PathBuf> {
        let names: &[&str] = match self {
            Cli::Claude => &[".claude/settings.json"],
            Cli::Codex => &[".codex/config.toml", ".codex/hooks.json"],
            Cli::Pi => &[".pi/agent/settings.json", ".pi/agent/models.json", ".pi/agent/extensions/own.ts"],
            Cli::Gemini => &[".gemini/settings.json"],
            Cli::Opencode => &[".config/opencode/opencode.json", ".config/opencode/plugin/own.js"],
        };
        names.iter().map(|name| home.join(name)).collect()
    }

    /// Furnishes a home; gives what belongs into the environment.
    pub(crate) fn furnish(self, home: &Path, work: &Path, port: u16) -> Vec<(&'static str, String)> {
        match self {
            Cli::Claude => claude(home, work, port),
            Cli::Codex => codex(home, work, port),
            Cli::Pi => pi(home, port),
            Cli::Gemini => gemini(home, work, port),
            Cli::Opencode => opencode(home, port),
        }
    }

    /// A login by which the CLI knows the limits of a subscription; gives what changes in the environment. The other
    /// CLIs know such limits with a key, too.
    pub(crate) fn subscribe(self, home: &Path) -> Option<(&'static str, &'static str)> {
        match self {
            Cli::Claude => {
                let login = json!({"accessToken": KEY, "refreshToken": KEY, "expiresAt": 4_102_444_800_000_u64,
                    "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
                    "rateLimitTier": "default_claude_max_5x"});
                put(&home.join(".claude/.credentials.json"), &json!({"claudeAiOauth": login}).to_string());
                Some(("ANTHROPIC_API_KEY", ""))
            }
            Cli::Pi => {
                let path = home.join(".pi/agent/models.json");
                let text = fs::read_to_string(&path).expect("it was furnished");
                let mut models: Value = serde_json::from_str(&text).expect("it is JSON");
                models["providers"]["scripted"]["api"] = json!("openai-codex-responses");
                // {"alg":"none"} and {"https://api.openai.com/auth":{"chatgpt_account_id":"nobody"}}
                let token = [
                    "eyJhbGciOiJub25lIn0",
                    "eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoibm9ib2R5In19",
                    "c2ln",
                ];
                models["providers"]["scripted"]["apiKey"] = json!(token.join("."));
                put(&path, &models.to_string());
                None
            }
            Cli::Codex | Cli::Gemini | Cli::Opencode => None,
        }
    }

    /// Settings of a user who wants to be asked about everything.
    pub(crate) fn ask_always(self, home: &Path) {
        if self == Cli::Claude {
            change_claude(home, |settings| settings["permissions"] = json!({"defaultMode": "default"}));
        }
    }

    /// The classic renderer, as an agent has it that its user has started.
    pub(crate) fn draw_as_before(self, home: &Path, profiles: &Path) {
        change_claude(home, |settings| settings["tui"] = json!("default"));
        let built_in = include_str!("../../data/profiles/claude.toml");
        let forced = "env = { CLAUDE_CODE_NO_FLICKER = \"1\" }";
        assert!(built_in.contains(forced), "the profile asks for the full-screen renderer in another way");
        put(&profiles.join("claude.toml"), &built_in.replace(forced, ""));
    }

    /// A hook of the user's own refuses each prompt while that file is there.
    pub(crate) fn refuse_prompts(self, home: &Path, file: &Path) {
        add_hook(home, "UserPromptSubmit", &format!("test ! -e '{}' || exit 2", file.display()));
    }

    /// A hook of the user's own lets a turn continue: once, with what that file says, at the next Stop after the file
    /// is there.
    pub(crate) fn continue_after_stop(self, home: &Path, file: &Path) {
        let file = file.display();
        add_hook(home, "Stop", &format!("test -s '{file}' || exit 0; cat '{file}' >&2; rm '{file}'; exit 2"));
    }

    /// A folder that its user has not said to trust.
    pub(crate) fn distrust(self, home: &Path) {
        let path = home.join(".codex/config.toml");
        let text = fs::read_to_string(&path).expect("it was furnished");
        put(&path, text.split("\n[projects.").next().expect("there is always a first part"));
    }

    /// Takes from a furnished home what says that the user has been here before.
    pub(crate) fn unsettle(self, home: &Path) {
        match self {
            Cli::Claude => {
                let path = home.join(".claude.json");
                let text = fs::read_to_string(&path).expect("it was furnished");
                let mut state: Value = serde_json::from_str(&text).expect("it is JSON");
                state["projects"] = json!({});
                put(&path, &state.to_string());
            }
            Cli::Codex => fs::remove_file(home.join(".codex/config.toml")).expect("it was furnished"),
            Cli::Pi => {
                fs::remove_file(home.join(".pi/agent/models.json")).expect("it was furnished");
                put(&home.join(".pi/agent/settings.json"), "{}");
            }
            Cli::Gemini | Cli::Opencode => unreachable!("no scene is played with it"),
        }
    }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder");
    fs::write(path, text).expect("written");
}

/// Changes the settings of Claude Code in a furnished home.
fn change_claude(home: &Path, change: impl FnOnce(&mut Value)) {
    let path = home.join(".claude/settings.json");
    let text = fs::read_to_string(&path).expect("it was furnished");
    let mut settings: Value = serde_json::from_str(&text).expect("it is JSON");
    change(&mut settings);
    put(&path, &settings.to_string());
}

/// One more hook of the user's own in Claude Code.
fn add_hook(home: &Path, event: &str, command: &str) {
    let hook = json!({"hooks": [{"type": "command", "command": command}]});
    change_claude(home, |settings| settings["hooks"][event].as_array_mut().expect("there are hooks").push(hook));
}

/// The command of a hook of the user's own: it notes the event's name.
fn own_hook(home: &Path, event: &str) -> String {
    format!("echo {event} >> '{}'", own_hooks(home).display())
}

/// Where the user's own hooks note what happened.
pub(crate) fn own_hooks(home: &Path) -> PathBuf {
    home.join("own-hooks")
}

fn claude(home: &Path, work: &Path, port: u16) -> Vec<(&'static str, String)> {
    let state = json!({
        "hasCompletedOnboarding": true, "theme": "dark", "hasSeenAutoDefaultNudge": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {work.display().to_string(): {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
    });
    put(&home.join(".claude.json"), &state.to_string());
    let own = |event: &str| json!([{"hooks": [{"type": "command", "command": own_hook(home, event)}]}]);
    let hooks =
        json!({"SessionStart": own("SessionStart"), "UserPromptSubmit": own("UserPromptSubmit"), "Stop": own("Stop")});
    put(&home.join(".claude/settings.json"), &serde_json::to_string_pretty(&json!({"hooks": hooks})).expect("JSON"));
    vec![
        ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}")),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
    ]
}

/// As Codex does it when its user says that a hook is to be trusted.
fn trusted_hash(event: &str, command: &str) -> String {
    let hook = json!({"async": false, "command": command, "timeout": 600, "type": "command"});
    let identity = json!({"event_name": event, "hooks": [hook]}).to_string();
    let hex: String = Sha256::digest(identity.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn codex(home: &Path, work: &Path, port: u16) -> Vec<(&'static str, String)> {
    let hooks_file = home.join(".codex/hooks.json");
    let events = [("UserPromptSubmit", "user_prompt_submit"), ("Stop", "stop")];
    let mut hooks = json!({});
    let mut trust = String::new();
    for (name, label) in events {
        let command = own_hook(home, name);
        hooks[name] = json!([{"hooks": [{"type": "command", "command": command}]}]);
        let (file, hash) = (hooks_file.display(), trusted_hash(label, &command));
        trust.push_str(&format!("\n[hooks.state.\"{file}:{label}:0:0\"]\ntrusted_hash = \"{hash}\"\n"));
    }
    put(&hooks_file, &json!({"hooks": hooks}).to_string());
    let text = format!(
        "model = \"scripted-model\"\nmodel_provider = \"scripted\"\nmodel_context_window = 200000\n\
         check_for_update_on_startup = false\n\n\
         [model_providers.scripted]\nname = \"Scripted\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         env_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n\n[analytics]\nenabled = false\n\n\
         [feedback]\nenabled = false\n{trust}\n[projects.{}]\ntrust_level = \"trusted\"\n",
        Value::from(work.display().to_string())
    );
    put(&home.join(".codex/config.toml"), &text);
    vec![("SCRIPTED_KEY", KEY.to_owned())]
}

fn pi(home: &Path, port: u16) -> Vec<(&'static str, String)> {
    let agent = home.join(".pi/agent");
    let model = json!({"id": "scripted-model", "name": "Scripted", "reasoning": false, "input": ["text"],
        "contextWindow": 200_000, "maxTokens": 8000,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}});
    let provider = json!({"baseUrl": format!("http://127.0.0.1:{port}/v1"), "api": "openai-completions",
        "apiKey": KEY, "models": [model]});
    put(&agent.join("models.json"), &json!({"providers": {"scripted": provider}}).to_string());
    let settings = json!({"defaultProvider": "scripted", "defaultModel": "scripted-model"});
    put(&agent.join("settings.json"), &settings.to_string());
    let log = Value::from(own_hooks(home).display().to_string());
    put(
        &agent.join("extensions/own.ts"),
        &format!(
            "import {{ appendFileSync }} from \"node:fs\";\nexport default function (pi: any) {{\n  \
             for (const name of [\"input\", \"agent_end\"]) pi.on(name, () => appendFileSync({log}, name + \"\\n\"));\n}}\n"
        ),
    );
    ["PI_SKIP_VERSION_CHECK", "PI_OFFLINE"].map(|name| (name, "1".to_owned())).to_vec()
}

fn gemini(home: &Path, work: &Path, port: u16) -> Vec<(&'static str, String)> {
    let own = |event: &str| json!([{"hooks": [{"type": "command", "command": own_hook(home, event)}]}]);
    let settings = json!({
        "hooks": {"BeforeAgent": own("BeforeAgent"), "AfterAgent": own("AfterAgent")},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
        "ui": {"hideTips": true, "hideBanner": true}, "ide": {"enabled": false, "hasSeenNudge": true},
        "model": {"name": "gemini-2.5-pro"}, "hooksConfig": {"enabled": true},
    });
    put(&home.join(".gemini/settings.json"), &serde_json::to_string_pretty(&settings).expect("JSON"));
    let trusted = json!({work.display().to_string(): "TRUST_FOLDER"});
    put(&home.join(".gemini/trustedFolders.json"), &trusted.to_string());
    vec![
        ("GEMINI_API_KEY", KEY.to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", format!("http://127.0.0.1:{port}")),
        ("GEMINI_TELEMETRY_ENABLED", "false".to_owned()),
    ]
}

fn opencode(home: &Path, port: u16) -> Vec<(&'static str, String)> {
    let model = json!({"name": "Scripted", "tool_call": true, "limit": {"context": 200_000, "output": 8000}});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "Scripted",
        "options": {"baseURL": format!("http://127.0.0.1:{port}/v1"), "apiKey": KEY},
        "models": {"scripted-model": model}});
    let settings = json!({"autoupdate": false, "share": "disabled", "model": "scripted/scripted-model",
        "small_model": "scripted/scripted-model", "enabled_providers": ["scripted"],
        "permission": {"edit": "allow", "bash": "ask", "webfetch": "deny"}, "provider": {"scripted": provider}});
    put(&home.join(".config/opencode/opencode.json"), &settings.to_string());
    let log = Value::from(own_hooks(home).display().to_string());
    put(
        &home.join(".config/opencode/plugin/own.js"),
        &format!(
            "import {{ appendFileSync }} from \"node:fs\";\nconst note = (name) => appendFileSync({log}, name + \"\\n\");\n\
             export const Own = async () => ({{\n  \"chat.message\": async () => note(\"chat.message\"),\n  \
             event: async ({{ event }}) => note(event.type),\n}});\n"
        ),
    );
    let names = [
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS",
        "OPENCODE_DISABLE_SHARE",
    ];
    names.map(|name| (name, "1".to_owned())).to_vec()
}
