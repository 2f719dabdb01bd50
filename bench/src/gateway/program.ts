/** Starts a peer's program and waits until its health check succeeds. */
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { BenchError } from '../bench-error.js'
import type { Preparation } from '../measure.js'
import { endProcess, hasEnded, spawnOwn } from '../own-process.js'

export interface Program {
  name: string
  /** Arguments for Node. */
  args: readonly string[]
  env?: Readonly<Record<string, string>>
  /** URL that responds with 200 when the program is ready. */
  readyUrl: string
}

const START_MS = 20_000
const POLL_MS = 50
/** Characters of its output that an error message shows. */
const SHOWN_CHARACTERS = 4_000

export async function startProgram(
  { name, args, env, readyUrl }: Program,
  { atEnd, signal }: Preparation,
): Promise<ChildProcess> {
  const child = spawnOwn(process.execPath, args, {
    // Its log is discarded.
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, NODE_ENV: 'production', ...env },
  })
  atEnd(() => endProcess(child))
  let shown = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    shown = (shown + text).slice(-SHOWN_CHARACTERS)
  })
  const deadlineMs = performance.now() + START_MS
  while (!(await isReady(readyUrl))) {
    signal.throwIfAborted()
    if (hasEnded(child)) throw new BenchError(`${name} exited during its start:\n${shown}`)
    if (performance.now() > deadlineMs) throw new BenchError(`${name} is not ready:\n${shown}`)
    await sleep(POLL_MS)
  }
  return child
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(url)
    await response.arrayBuffer()
    return response.status === 200
  } catch {
    return false
  }
}
