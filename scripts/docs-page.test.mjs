import { describe, expect, it } from 'vitest'
import { syncPage } from './docs-page.mjs'

const sources = {
  source: (name) => (name === 'retry.ts' ? "import 'spillway'\nretry()\n" : undefined),
  output: async (name) => `${name} says hello\n`,
}
const page = (...lines) => lines.join('\n')

describe('syncPage', () => {
  it('syncPage puts the example and its output into the blocks under their markers', async () => {
    const before = page(
      '# Retry',
      '<!-- example: retry.ts -->',
      '```ts',
      'old()',
      '```',
      'prints',
      '<!-- output: retry.ts -->',
      '',
      '```text',
      '```',
      'end',
    )
    const { text, errors } = await syncPage(before, sources)
    expect(errors).toEqual([])
    expect(text).toBe(
      page(
        '# Retry',
        '<!-- example: retry.ts -->',
        '```ts',
        "import 'spillway'",
        'retry()',
        '```',
        'prints',
        '<!-- output: retry.ts -->',
        '',
        '```text',
        'retry.ts says hello',
        '```',
        'end',
      ),
    )
    expect(await syncPage(text, sources)).toEqual({ text, errors: [], changes: [] })
  })

  it('syncPage names the first line that differs', async () => {
    const stale = page('<!-- example: retry.ts -->', '```ts', "import 'spillway'", 'old()', '```')
    const { changes } = await syncPage(stale, sources)
    expect(changes).toEqual([
      { line: 4, message: 'retry.ts: the page has `old()`, the file `retry()`' },
    ])
  })

  it('syncPage leaves output blocks alone when it may not run examples', async () => {
    const before = page('<!-- output: retry.ts -->', '```text', 'from last time', '```')
    const { text, changes } = await syncPage(before, { source: sources.source })
    expect(text).toBe(before)
    expect(changes).toEqual([])
  })

  it.each([
    [
      'an unknown example',
      page('', '<!-- example: gone.ts -->', '```ts', '```'),
      'examples/src/gone',
    ],
    ['a missing block', page('', '<!-- example: retry.ts -->', 'text'), 'expected a ```ts block'],
    [
      'a block in another language',
      page('', '<!-- output: retry.ts -->', '```ts', '```'),
      '```text',
    ],
    [
      'a block that never ends',
      page('', '<!-- example: retry.ts -->', '```ts', 'x'),
      'never closed',
    ],
  ])('syncPage reports %s with its line and keeps the text', async (_, before, message) => {
    const { text, errors } = await syncPage(before, sources)
    expect(text).toBe(before)
    expect(errors).toEqual([{ line: 2, message: expect.stringContaining(message) }])
  })

  it('syncPage ignores markers inside code blocks', async () => {
    const before = page('```md', '<!-- example: gone.ts -->', '```')
    expect(await syncPage(before, sources)).toEqual({ text: before, errors: [], changes: [] })
  })
})
