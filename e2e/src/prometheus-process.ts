/** Runs Prometheus as its own process, with rules, and with targets in a file that it watches. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './faults/fleet.js'

const START_MS = 20_000

export interface Alert {
  readonly labels: Readonly<Record<string, string>>
  readonly state: 'pending' | 'firing'
}

export interface PrometheusProcess {
  /** Pending and firing alerts. */
  alerts(): Promise<readonly Alert[]>
  /** Scrapes these URLs from now on, and no others. */
  scrape(urls: readonly string[]): void
  stop(): Promise<void>
}

/** `intervalMs`: between scrapes and between evaluations of the rules. */
export async function startPrometheus(
  rules: string,
  urls: readonly string[],
  { intervalMs }: { intervalMs: number },
): Promise<PrometheusProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
  const targets = join(folder, 'targets.json')
  const scrape = (next: readonly string[]) => {
    const hosts = next.map((url) => new URL(url).host)
    writeFileSync(`${targets}.new`, JSON.stringify([{ targets: hosts }]))
    renameSync(`${targets}.new`, targets)
  }
  scrape(urls)
  writeFileSync(join(folder, 'alerts.yaml'), rules)
  const interval = `${intervalMs}ms`
  // JSON is valid YAML.
  const config = {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: ['alerts.yaml'],
    scrape_configs: [
      { job_name: 'spillway', file_sd_configs: [{ files: [targets], refresh_interval: '1s' }] },
    ],
  }
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const port = await freePort()
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  const failed = once(child, 'error').then(([error]) => {
    throw new Error('Prometheus cannot be started; install it with apt-get', { cause: error })
  })
  await Promise.race([failed, untilReady(`http://127.0.0.1:${port}/-/ready`)])
  failed.catch(() => {})
  return {
    async alerts() {
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`)
      const { data } = (await answer.json()) as { data: { alerts: Alert[] } }
      return data.alerts
    },
    scrape,
    async stop() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      process.off('exit', endWithUs)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilReady(url: string): Promise<void> {
  const endMs = performance.now() + START_MS
  while (performance.now() < endMs) {
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.ok === true) return
    await sleep(50)
  }
  throw new Error(`Prometheus was not ready within ${START_MS} ms`)
}
