// test-group: io, slow

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Generous for a run of a second or two, short for one that hangs. */
const ENDS_WITHIN_MS = 15_000

interface Block {
  page: string
  kind: string
  name: string
  text: string
}

const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => join('docs', file))
const blocks = ['README.md', ...pages].flatMap(readBlocks)

/** The blocks under the markers of a page; see scripts/docs-page.mjs for their form. */
function readBlocks(page: string): Block[] {
  const marked = /^<!-- (example|output): (\S+)\.ts -->\s+```\w+\n(.*?)^```$/gms
  const matches = readFileSync(join(root, page), 'utf8').matchAll(marked)
  return Array.from(matches, ([, kind = '', name = '', text = '']) => ({ page, kind, name, text }))
}

// The program of `npm run demo` has arguments, a screen and its own test.
const examples = readdirSync(join(root, 'examples/src'))
  .filter((file) => file.endsWith('.ts') && file !== 'overloaded-pod.ts')
  .map((file) => file.slice(0, -'.ts'.length))

function run(name: string): Promise<{ error: Error | null; stdout: string; stderr: string }> {
  const file = join(root, 'examples/dist', `${name}.js`)
  return new Promise((resolve) => {
    const env = { ...process.env, FORCE_COLOR: '0' }
    const options = { env, timeout: ENDS_WITHIN_MS, killSignal: 'SIGKILL' } as const
    execFile(process.execPath, [file], options, (error, stdout, stderr) => {
      resolve({ error, stdout, stderr })
    })
  })
}

describe('documentation', () => {
  it.each(examples)('the documentation shows %s on exactly one page', (name) => {
    const shown = blocks.filter((block) => block.kind === 'example' && block.name === name)
    expect(shown.map(({ page }) => page)).toHaveLength(1)
  })

  it('the output of an example is on the same page as its code', () => {
    const codeOn = (page: string) =>
      blocks.filter((block) => block.kind === 'example' && block.page === page)
    const outputs = blocks.filter(({ kind }) => kind === 'output')
    for (const { page, name } of outputs) {
      expect(codeOn(page).map((block) => block.name)).toContain(name)
    }
    expect(outputs.length).toBeGreaterThan(0)
  })
})

describe.concurrent('examples', () => {
  it.each(examples)('example %s ends by itself and prints what its page shows', async (name) => {
    const { error, stdout, stderr } = await run(name)
    expect(error, stderr).toBeNull()

    // A module without output has no output block on any page.
    const shown = blocks.filter((block) => block.kind === 'output' && block.name === name)
    expect(stdout).toBe(shown.map(({ text }) => text).join(''))
  })
})
