export function plural(locale, count, forms) {
  const form = new Intl.PluralRules(locale).select(count);
  return forms[form] ?? forms.other;
}
