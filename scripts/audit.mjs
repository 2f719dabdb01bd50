// npm run check -- audit: known vulnerabilities in dependencies that users install. Without a registry that serves
// advisories the check is skipped, so that it can run offline.

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, root, SKIPPED } from './run-command.mjs'

const PATIENCE_MS = 20_000
const SERIOUS = ['high', 'critical']

if (isMain(import.meta.url)) process.exitCode = printAudit(await audit())

/** Returns the exit code. */
export function printAudit(report, write = (line) => process.stdout.write(`${line}\n`)) {
  if (report === undefined) {
    write('no registry that knows of vulnerabilities could be reached: NOT CHECKED')
    return SKIPPED
  }
  const found = seriousIn(report)
  for (const line of found) write(line)
  return found.length > 0 ? 1 : 0
}

/** The report of npm; undefined if the registry serves none. */
function audit() {
  const packages = readdirSync(join(root, 'packages')).flatMap((name) => {
    const manifest = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'))
    return ['--workspace', manifest.name]
  })
  const args = ['audit', '--omit=dev', '--json', '--fetch-retries=0', ...packages]
  return new Promise((resolve) => {
    execFile('npm', args, { cwd: root, timeout: PATIENCE_MS }, (_, stdout) => {
      resolve(reportIn(stdout))
    })
  })
}

export function reportIn(stdout) {
  try {
    const parsed = JSON.parse(stdout)
    return parsed.vulnerabilities === undefined ? undefined : parsed
  } catch {
    return undefined
  }
}

function seriousIn({ vulnerabilities }) {
  return Object.values(vulnerabilities)
    .filter(({ severity }) => SERIOUS.includes(severity))
    .map(({ name, severity, range, via }) => {
      const titles = via.flatMap((each) => (typeof each === 'string' ? [] : [each.title]))
      return `${severity}: ${name} ${range}${titles.length > 0 ? `: ${titles.join('; ')}` : ''}`
    })
}
