// Small changes of a Lua file that its differential tests have to notice, and a choice of them by a fixed seed.

/** The pattern and the replacement of each operator. */
const OPERATORS = [
  { name: 'boundary', find: / (<=|>=|<|>) /g, write: (_, sign) => ` ${BOUNDARIES[sign]} ` },
  { name: 'equality', find: / (==|~=) /g, write: (_, sign) => (sign === '==' ? ' ~= ' : ' == ') },
  { name: 'sign', find: / ([+-]) (?=[\w(])/g, write: (_, sign) => (sign === '+' ? ' - ' : ' + ') },
  // Not an index, a key of a format or part of a name.
  {
    name: 'constant',
    find: /(?<=[=<>+\-*/(,] )\d+(?![\w.'])/g,
    write: (digits) => `${Number(digits) + 1}`,
  },
  {
    name: 'min-max',
    find: /\b(min|max)(?=\()/g,
    write: (name) => (name === 'min' ? 'max' : 'min'),
  },
  {
    name: 'condition',
    find: /\bif (.+?) then\b/g,
    write: (_, condition) => `if not (${condition}) then`,
  },
  {
    name: 'expiry',
    find: /, 'PX(?:AT)?', .+(?=\)$)|^\s*redis\.call\('PEXPIRE(?:AT)?'.*$/g,
    write: () => '',
  },
]
const BOUNDARIES = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' }

/** Lines without code. */
const SKIPPED = /^\s*--|^\s*$/

/**
 * Every change of one file.
 * @returns {{ operator: string, line: number, before: string, after: string, text: string }[]} `text` is the whole file
 */
export function mutantsOf(text) {
  const lines = text.split('\n')
  return lines.flatMap((before, index) =>
    SKIPPED.test(before)
      ? []
      : OPERATORS.flatMap(({ name, find, write }) =>
          Array.from(before.matchAll(find), (match) => {
            const end = match.index + match[0].length
            const after = before.slice(0, match.index) + write(...match) + before.slice(end)
            const changed = lines.with(index, after).join('\n')
            return { operator: name, line: index + 1, before, after, text: changed }
          }),
        ),
  )
}

/** `count` of the values, or all of them; always the same ones for a seed. */
export function chooseSome(values, count, seed) {
  let state = seed
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  return values
    .map((value) => ({ value, order: random() }))
    .sort((one, other) => one.order - other.order)
    .slice(0, count)
    .map(({ value }) => value)
}
