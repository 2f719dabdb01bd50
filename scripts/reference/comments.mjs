// Reads the comments of options, in the library's declarations and in the gateway's schema.

/** A comment may contain "Range: …." and "Default: …."; both are taken out of its meaning. */
export function readComment(comment) {
  const text = comment
    .replace(/^\/\*\*\s*/, '')
    .replace(/\s*\*?\/$/, '')
    .replace(/\s@\w+.*$/s, '')
    .trim()
  const part = (name) =>
    new RegExp(`\\b${name}: (.*?)\\.(?=\\s+(?:Default|Range): |\\s+[A-Z]|\\s*$)`, 's').exec(text)
  const range = part('Range')
  const fallback = part('Default')
  const meaning = [range, fallback].reduce(
    (rest, found) => (found ? rest.replace(found[0], '') : rest),
    text,
  )
  return {
    meaning: meaning.replace(/\s+/g, ' ').trim(),
    range: range?.[1].replace(/\s+/g, ' '),
    fallback: fallback?.[1].replace(/\s+/g, ' '),
  }
}
