/** A real Prometheus for tests with its own process, port and folder. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endWithThisProcess } from './end-with-process.js'
import { freePort } from './redis-server.js'

const isThere = (program: string) => spawnSync(program, ['--version']).error === undefined

export const hasPrometheus = isThere('prometheus') && isThere('promtool')
if (!hasPrometheus) {
  process.stderr.write('no prometheus and promtool on the PATH: SKIPPED, nothing was scraped\n')
}

export interface PrometheusServer {
  /** The values of a query result. Undefined while Prometheus does not answer. Throws if the query is not valid. */
  ask(query: string): Promise<number[] | undefined>
  stop(): Promise<void>
}

interface Answer {
  status: 'success' | 'error'
  error?: string
  data?: { result: { value: [number, string] }[] }
}

/** Scrapes `/metrics` on these ports of this machine, as the job `spillway`. */
export async function startPrometheus(
  targets: readonly number[],
  { intervalMs = 200 }: { intervalMs?: number } = {},
): Promise<PrometheusServer> {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
  const file = join(folder, 'prometheus.yml')
  const addresses = targets.map((target) => `127.0.0.1:${target}`)
  const job = { job_name: 'spillway', static_configs: [{ targets: addresses }] }
  const config = { global: { scrape_interval: `${intervalMs}ms` }, scrape_configs: [job] }
  // JSON is valid YAML.
  writeFileSync(file, JSON.stringify(config))
  const port = await freePort()
  const child = spawn(
    'prometheus',
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  )
  const forget = endWithThisProcess(child.pid)
  return {
    async ask(query) {
      const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`
      const response = await fetch(url).catch(() => undefined)
      // 503: it is starting.
      if (response === undefined || response.status === 503) return undefined
      const { status, error, data } = (await response.json()) as Answer
      if (status === 'error') throw new Error(`${error}: ${query}`)
      return data?.result.map(({ value }) => Number(value[1]))
    },
    async stop() {
      const gone = once(child, 'close')
      child.kill('SIGKILL')
      await gone
      forget()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
