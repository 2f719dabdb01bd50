// docs/reference/options.md: every option of the library, from the comments in its declarations.

import { readComment } from './comments.mjs'

const FIRST = ['SpillwayOptions', 'GuardOptions', 'RunOptions']

/** @param {ReturnType<typeof import('../api-options.mjs').publicOptions>} options */
export function optionsPage(options) {
  const types = [...new Set(options.map(({ type }) => type))]
  const order = (type) => (FIRST.includes(type) ? FIRST.indexOf(type) : FIRST.length)
  const sorted = types.toSorted((a, b) => order(a) - order(b) || (a < b ? -1 : 1))
  const known = new Set(types)
  return [
    '# Library options',
    '',
    'Every option of the library, by the type that has it. A **duration** is a number of milliseconds or a text such as',
    "`'250ms'`, `'1.5s'`, `'2m'`. Options without a default are required. `RunOptions` are those of one call.",
    '',
    ...sorted.flatMap((type) =>
      section(
        type,
        options.filter((each) => each.type === type),
        known,
      ),
    ),
  ].join('\n')
}

function section(type, options, known) {
  return [
    `## ${type}`,
    '',
    '| Option | Type | Default | Range | Meaning |',
    '|---|---|---|---|---|',
    ...options.map(({ path, typeText, isOptional, comment }) => {
      const { meaning, range, fallback } = readComment(comment)
      const standard = fallback ?? (isOptional ? 'none' : 'required')
      return `| \`${path}\` | ${typeCell(typeText, known)} | ${cell(standard)} | ${cell(range)} | ${cell(meaning)} |`
    }),
    '',
  ]
}

/** Types with their own section are links. Long object types are described by the rows of their members. */
function typeCell(text, known) {
  const short = text.replace(/\{.*\}/s, 'object').replace(/ \| undefined$/, '')
  const shown = `\`${short.replaceAll('|', '\\|')}\``
  const found = [...known].find((type) => new RegExp(`\\b${type}\\b`).test(short))
  return found === undefined ? shown : `[${shown}](#${found.toLowerCase()})`
}

function cell(text) {
  return (text ?? '').replace(/(?<!\\)\|/g, '\\|').replaceAll('<', '&lt;')
}
