// test-group: io, slow

/** The short form of `npm run e2e -- operate`: real gateways, a real Redis and operators. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const E2E = fileURLToPath(new URL('../../../e2e/dist/main.js', import.meta.url))
const MOST_MS = 120_000

interface Figure {
  readonly figure: string
  readonly value: number
  readonly holds: boolean
}

it(
  'gateways answer every request and keep the limit during reloads, a replacement and a Redis crash',
  async () => {
    const args = [E2E, 'operate', '--only', 'short', '--json']
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
      timeout: MOST_MS,
    }).catch((error: { stdout: string; stderr: string }) => error)
    const figures = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Figure)
    expect(
      figures.filter(({ holds }) => !holds),
      `${stderr}\n${stdout}`,
    ).toEqual([])
    const figureOf = (name: string) => figures.find(({ figure }) => figure === name)?.value
    expect(figureOf('reloads applied')).toBe(16)
    expect(figureOf('files with a mistake refused')).toBe(4)
    expect(figureOf('answered by the vendor')).toBeGreaterThan(100)
  },
  MOST_MS,
)
