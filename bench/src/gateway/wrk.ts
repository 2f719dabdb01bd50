/** Load from wrk, which uses little CPU time and leaves the cores to the measured processes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchError } from '../bench-error.js'
import type { Preparation } from '../measure.js'
import { spawnOwn } from '../own-process.js'

export const CONNECTIONS = 32
const THREADS = 1
/** Longer than a round: slow responses are counted instead of timed out. */
const TIMEOUT = '30s'

/** Body that every request sends. */
export interface Load {
  url: string
  headers: Readonly<Record<string, string>>
  /** Undefined for a GET request. */
  body?: string
  /** Every response has to be a refusal instead of a success. */
  refused?: true
}

export interface Answered {
  requests: number
  seconds: number
}

export interface Wrk {
  /** Fails unless every response is a success. `enough` ends the run early. */
  run(seconds: number, enough?: AbortSignal): Promise<Answered>
}

export async function openWrk(load: Load, { atEnd }: Preparation): Promise<Wrk> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-bench-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  const script = join(folder, 'load.lua')
  await writeFile(script, scriptText(load))
  return {
    async run(seconds, enough) {
      const size = ['-t', `${THREADS}`, '-c', `${CONNECTIONS}`, '-d', `${seconds}s`]
      const args = [...size, '--timeout', TIMEOUT, '-s', script, load.url]
      return answered(await runWrk(args, enough), load.refused === true)
    },
  }
}

/** wrk calls `done` at the end; it prints the figures as the last line. */
function scriptText({ headers, body }: Load): string {
  const bodyLines = body === undefined ? '' : `wrk.method = 'POST'\nwrk.body = ${quoted(body)}\n`
  const lines = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[ ${quoted(name)} ] = ${quoted(value)}\n`,
  )
  return `${bodyLines}${lines.join('')}
function done(summary)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout
  print(string.format('\\n%d %d %d %d', summary.requests, summary.duration, errors.status, failed))
end
`
}

/** Lua's long brackets, in which nothing has to be escaped. */
function quoted(text: string): string {
  return `[==[${text}]==]`
}

function runWrk(args: readonly string[], enough: AbortSignal | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawnOwn('wrk', args, { stdio: ['ignore', 'pipe', 'pipe'] })
    // On SIGINT wrk stops and prints its report.
    const stop = () => child.kill('SIGINT')
    enough?.addEventListener('abort', stop)
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    }
    child.once('error', (error) => reject(new BenchError(missing(error))))
    child.once('close', (code) => {
      enough?.removeEventListener('abort', stop)
      if (code === 0) resolve(output)
      else reject(new BenchError(`wrk failed (exit code ${code}):\n${output}`))
    })
  })
}

function answered(output: string, allRefused: boolean): Answered {
  const [requests, us, refused, failed] = output
    .trimEnd()
    .split('\n')
    .at(-1)!
    .split(' ')
    .map(Number)
  if (refused !== (allRefused ? requests : 0) || failed !== 0) {
    throw new BenchError(
      `of ${requests} answers wrk got ${refused} errors, and ${failed} times none:\n${output}`,
    )
  }
  if (!requests || !us) throw new BenchError(`wrk got no answer:\n${output}`)
  return { requests, seconds: us / 1e6 }
}

function missing(error: Error): string {
  return `wrk could not be started (${(error as NodeJS.ErrnoException).code}).
This suite needs wrk on the PATH. Install it:
  Debian, Ubuntu   sudo apt-get install wrk
  macOS            brew install wrk`
}
