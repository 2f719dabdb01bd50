/** What a gateway has logged is there, whatever ended its process. */
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'

const LOG = new URL('../dist/observe/log.js', import.meta.url).href

/** More than leave in one write. */
const MANY = `for (let i = 0; i < 2000; i++) log.request({ id: 'one of many', status: 200, tries: [] })`

function lastWords(ending: string): string {
  const program = `
    import { createLog } from ${JSON.stringify(LOG)}
    const log = createLog('info')
    log.request({ id: 'the last request', status: 200, tries: [] })
    log.failure(new Error('why it died'))
    ${ending}`
  const args = ['--input-type=module', '-e', program]
  return spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 20_000 }).stdout
}

describe('the last lines of a log', () => {
  it.each([
    ['an exit', 'process.exit(3)'],
    ['an uncaught error', "setImmediate(() => { throw new Error('nobody caught it') })"],
    ['having nothing left to do', ''],
    ['an exit after many lines', `${MANY}; process.exit(3)`],
    ['having nothing left to do after many lines', MANY],
    ['being closed', 'log.close()'],
    ['being closed before they were written', "log.close(); log.failure(new Error('too late'))"],
  ])('survive %s', (_, ending) => {
    const text = lastWords(ending)
    expect(text).toContain('the last request')
    expect(text).toContain('why it died')
    if (ending.includes('too late')) expect(text).toContain('too late')
    if (ending.includes(MANY)) expect(text.match(/one of many/g)).toHaveLength(2000)
  })
})
