import { describe, expect, it } from 'vitest'
import { pathProblems } from './check-paths.mjs'

const repository = {
  paths: ['docs/', 'docs/guard.md', 'packages/', 'packages/a/', 'packages/a/src/call.ts'],
  entries: ['a', 'a/http'],
}
const missingIn = (markdown) =>
  pathProblems(markdown, repository).map((problem) => problem.split(' ')[2].replace(/,$/, ''))

describe('the check of paths in ARCHITECTURE.md', () => {
  it.each([
    ['a file in backticks', 'A call is in `src/answer.ts`.', 'src/answer.ts'],
    ['a file name alone', 'A call is in `answer.ts`.', 'answer.ts'],
    ['a name that only ends like a file', 'A call is in `all.ts`.', 'all.ts'],
    ['a folder in backticks', 'Pages are in `pages/`.', 'pages/'],
    ['a link', 'See [guards](docs/guards.md#stages).', 'docs/guards.md'],
    ['a link without its folder', 'See [guards](guard.md).', 'guard.md'],
    ['a folder in a code block', '```\npackages/\n  b/    the gateway\n```', 'b/'],
    ['a file in a code block', '```\nsrc/  call.ts (a call), answer.ts\n```', 'answer.ts'],
    ['an entry of the package', 'Import `a/https`.', 'a/https'],
  ])('ARCHITECTURE.md may not name a path that does not exist: %s', (_, markdown, path) => {
    expect(missingIn(markdown)).toContain(path)
  })

  it.each([
    'A call is in `packages/a/src/call.ts`, `src/call.ts`, `call.ts` or `src/c*.ts`.',
    'Pages are in `docs/`, [all of them](docs), [guards](docs/guard.md#stages).',
    '```\npackages/\n  a/    read and/or write: call.ts\n```',
    'Import `a/http`; `node:http`, `@scope/name` and `application/json` are no paths.',
    'See [the site](https://example.com/guards.md) and [above](#the-rule).',
  ])(
    'paths of ARCHITECTURE.md that exist, and words that are no paths, are accepted: %s',
    (text) => {
      expect(missingIn(text)).toEqual([])
    },
  )
})
