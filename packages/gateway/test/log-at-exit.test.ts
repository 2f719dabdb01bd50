// test-group: io, slow

/** Lines of the log are written before the process ends, also after a crash. */
import { type StdioOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'

const LOG = new URL('../dist/observe/log.js', import.meta.url).href

/** More than fits into one write. */
const MANY = `for (let i = 0; i < 2000; i++) log.request({ id: 'one of many', status: 200, vendorAttempts: [] })`

function programOf(ending: string): string {
  return `
    import { createLog } from ${JSON.stringify(LOG)}
    const log = createLog('info')
    log.request({ id: 'the last request', status: 200, vendorAttempts: [] })
    log.failure(new Error('why it died'))
    ${ending}`
}

function outputOf(ending: string): string {
  const args = ['--input-type=module', '-e', programOf(ending)]
  return spawnSync(process.execPath, args, {
    encoding: 'utf8',
    timeout: 100_000,
    maxBuffer: 64 * 1_048_576,
  }).stdout
}

describe('log of a process that ends', () => {
  it.each([
    ['an exit', 'process.exit(3)'],
    ['an uncaught error', "setImmediate(() => { throw new Error('uncaught') })"],
    ['having nothing left to do', ''],
    ['an exit after many lines', `${MANY}; process.exit(3)`],
    ['having nothing left to do after many lines', MANY],
    ['being closed', 'log.close()'],
    ['being closed before they were written', "log.close(); log.failure(new Error('too late'))"],
  ])('the last log lines survive %s', (_, ending) => {
    const text = outputOf(ending)
    expect(text).toContain('the last request')
    expect(text).toContain('why it died')
    if (ending.includes('too late')) expect(text).toContain('too late')
    if (ending.includes(MANY)) expect(text.match(/one of many/g)).toHaveLength(2000)
  })
})

/** Writes far more than a pipe holds, continues and then ends. */
async function outlive(stdout: number | 'pipe', ending: string) {
  const program = `
    import { createLog } from ${JSON.stringify(LOG)}
    const log = createLog('info')
    ${MANY}
    log.failure(new Error('something is wrong'))
    process.send('still here')
    setTimeout(() => { ${ending} }, 1_200)`
  const stdio: StdioOptions = ['ignore', stdout, 'inherit', 'ipc']
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio })
  const [sent] = await once(child, 'message')
  const [code] = await once(child, 'exit')
  return [sent, code]
}

describe('log output that fails', () => {
  it.each(['process.exit(0)', 'process.disconnect()'])(
    'a log without a reader delays neither the work nor the exit: %s',
    async (ending) => {
      expect(await outlive('pipe', ending)).toEqual(['still here', 0])
    },
  )

  it.runIf(process.platform === 'linux')(
    'a full disk ends no process and does not prevent its exit',
    async () => {
      const full = openSync('/dev/full', 'w')
      expect(await outlive(full, 'process.disconnect()')).toEqual(['still here', 0])
    },
  )

  it('a log that gets more lines than it can hold reports the number of lost lines', () => {
    const folder = mkdtempSync(join(tmpdir(), 'log-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'log')
    // A file accepts everything at once, also on a busy machine.
    const ending = `
      for (let i = 0; i < 20; i++) log.request({ id: 'x'.repeat(1_048_576), status: 200, vendorAttempts: [] })
      process.exit(3)`
    const stdout = openSync(file, 'w')
    spawnSync(process.execPath, ['--input-type=module', '-e', programOf(ending)], {
      stdio: ['ignore', stdout, 'inherit'],
    })
    closeSync(stdout)
    const text = readFileSync(file, 'utf8')
    expect(text).toMatch(/"msg":"lines of this log are lost","lines":[1-9]/)
  })
})
