// Replaces constants of Lua scripts by their values. A local that a function uses becomes an upvalue, which Lua
// allocates each time the script runs; for constants that is a fifth of a script's cost.

const NAME = '[A-Z][A-Z0-9_]*'
const DECLARATION = new RegExp(`^local (${NAME}(?:, ${NAME})*) = (.+)$`)
/** Non-negative numbers only: a minus sign after a minus would start a comment. */
const LITERAL = /^(?:\d+(?:\.\d+)?|'[^'\\]*')$/
const STRING_OR_NAME = new RegExp(
  `'(?:[^'\\\\]|\\\\.)*'|"(?:[^"\\\\]|\\\\.)*"|(?<![\\w.:])(${NAME})(?!\\w)`,
  'g',
)

/**
 * Replaces constants by their values. A constant is a local in capitals that is declared as a number or a string; under
 * one name there is only one in a script.
 *
 * @param {string} script its name
 * @param {string[]} lines of a whole script, each without indentation
 */
export function inlineConstants(script, lines) {
  const values = new Map()
  const code = lines.filter((line) => {
    const declared = constantsOf(line)
    for (const [name, value] of declared) {
      const known = values.get(name) ?? value
      if (known !== value) throw new Error(`${script}.lua: ${name} is both ${known} and ${value}`)
      values.set(name, value)
    }
    return declared.length === 0
  })
  return code.map((line) =>
    line.replace(STRING_OR_NAME, (text, name) => (name && values.get(name)) ?? text),
  )
}

/** Only lines that declare nothing else. */
function constantsOf(line) {
  const [, names, values] = DECLARATION.exec(line) ?? []
  if (names === undefined) return []
  const given = values.split(', ')
  const constants = names.split(', ').map((name, index) => [name, given[index]])
  const isConstant = ([, value]) => value !== undefined && LITERAL.test(value)
  return constants.length === given.length && constants.every(isConstant) ? constants : []
}
