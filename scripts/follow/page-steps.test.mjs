import { expect, it } from 'vitest'
import { isShown, stepsOf } from './page-steps.mjs'

const PAGE = `# A page

Save this as
\`a.mjs\`:

\`\`\`js
console.log(1)
\`\`\`

In another terminal:

\`\`\`sh
node a.mjs
\`\`\`

It prints:

\`\`\`text
1
\`\`\`

Stop the gateway with
Ctrl-C. An example that is not saved:

\`\`\`ts
f()
\`\`\`

\`\`\`sh
node a.mjs
\`\`\`
`

it('a page becomes files, commands with their output, and programs to stop', () => {
  expect(stepsOf(PAGE)).toEqual([
    { file: 'a.mjs', text: 'console.log(1)\n' },
    { run: 'node a.mjs\n', line: 12, isOtherTerminal: true, shows: '1\n' },
    { stop: 'gateway' },
    { run: 'node a.mjs\n', line: 29, isOtherTerminal: false },
  ])
})

it.each([
  ['equal lines', '200\n503', '200\n503', true],
  ['another status', '200\n503', '200\n502', false],
  ['lines before and after', 'b', 'a\nb\nc', true],
  ['a part of a line', 'b', 'ab', false],
  ['a line between', 'a\nc', 'a\nb\nc', false],
  ['lines left out on the page', 'a\n…\nd', 'a\nb\nc\nd', true],
  ['text left out on the page', 'retry in … ms', 'retry in 12 ms', true],
  ['other decimals', '503, 0.837729 s', '503, 0.1 s', true],
  ['another address', 'on 127.0.0.1:8080', 'on 127.0.0.2:8080', false],
  ['blank lines and spaces', 'a\n\n6 b', 'a\n     6   b', true],
])('output is compared with the page: %s', (_, shown, printed, expected) => {
  expect(isShown(shown, printed)).toBe(expected)
})
