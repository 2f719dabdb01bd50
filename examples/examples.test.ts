// test-group: io, slow

import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Examples wait more than they compute, so several processes run them at once. */
const PROCESSES = 6
/** Only ends a run that hangs. */
const ENDS_WITHIN_MS = 300_000

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

/** These need Redis; tests of the library run them. */
const NEEDS_SERVERS = ['quick-start', 'shared-limit', 'migrate-bullmq-before', 'migrate-bullmq']
/** The README and the first pages about the library and OpenAI begin with it. */
const ON_THREE_PAGES = 'quick-start'

interface Ran {
  name: string
  problem?: string
  stdout: string
  stderr: string
}

/** Runs some examples in one process; see run-examples.mjs. */
function run(names: readonly string[]): Promise<Ran[]> {
  const args = [join(root, 'examples/run-examples.mjs'), ...names]
  const child = spawn(process.execPath, args, {
    env: { ...process.env, FORCE_COLOR: '0' },
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    timeout: ENDS_WITHIN_MS,
    killSignal: 'SIGKILL',
  })
  let text = ''
  child.stdio[3]?.on('data', (chunk) => {
    text += chunk
  })
  return new Promise((resolve) => {
    child.once('close', () => {
      const lines = text.split('\n').slice(0, -1)
      resolve(lines.map((line) => JSON.parse(line)))
    })
  })
}

/** Examples that start threads or measure the event loop. */
function needsOwnProcess(name: string): boolean {
  const source = readFileSync(join(root, 'examples/src', `${name}.ts`), 'utf8')
  return /worker_threads|WorkerBulkhead|shedder/i.test(source)
}

function chunksOf<T>(values: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, chunk) =>
    values.slice(chunk * size, (chunk + 1) * size),
  )
}

describe('documentation', () => {
  it.each(examples)(
    'the documentation shows %s on one page, and the first example on three',
    (name) => {
      const shown = blocks.filter((block) => block.kind === 'example' && block.name === name)
      expect(shown.map(({ page }) => page)).toHaveLength(name === ON_THREE_PAGES ? 3 : 1)
    },
  )

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

describe('examples', () => {
  const runnable = examples.filter((name) => !NEEDS_SERVERS.includes(name))
  let ran = new Map<string, Ran>()
  beforeAll(async () => {
    const alone = runnable.filter(needsOwnProcess)
    const others = runnable.filter((name) => !needsOwnProcess(name))
    const groups = [...alone.map((name) => [name]), ...chunksOf(others, 14)]
    const results: Ran[] = []
    const runNext = async () => {
      for (let next = groups.pop(); next !== undefined; next = groups.pop()) {
        results.push(...(await run(next)))
      }
    }
    await Promise.all(Array.from({ length: PROCESSES }, runNext))
    ran = new Map(results.map((each) => [each.name, each]))
  }, 2 * ENDS_WITHIN_MS)

  it.each(runnable)('example %s ends by itself and prints what its page shows', (name) => {
    // An example that does not end has no result, nor have those after it in its process.
    const { problem, stdout, stderr } = ran.get(name) ?? { problem: 'it did not end' }
    expect(problem, stderr).toBeUndefined()

    // A module without output has no output block on any page.
    const shown = blocks.filter((block) => block.kind === 'output' && block.name === name)
    expect(stdout).toBe(shown.map(({ text }) => text).join(''))
  })
})
