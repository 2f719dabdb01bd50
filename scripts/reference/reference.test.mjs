// test-group: io

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { exportedMetrics } from '../metric-names.mjs'
import { root, run } from '../run-command.mjs'
import { descriptionProblems, readFacts } from './build-reference.mjs'
import { readComment } from './options-page.mjs'

const read = (path) => readFileSync(join(root, path), 'utf8')
const facts = await readFacts()

describe('generated reference', () => {
  it('every option, error code, metric and flag has a description', () => {
    expect(descriptionProblems(facts)).toEqual([])
  })

  it('the page of options has a row for each public option of the library', () => {
    const rows = read('docs/reference/options.md').match(/^\| `/gm)
    expect(facts.options.length).toBeGreaterThan(400)
    expect(rows).toHaveLength(facts.options.length)
  })

  it('the page of error codes has a section for each code of the library', () => {
    const sections = [...read('docs/reference/error-codes.md').matchAll(/^## (\w+)$/gm)]
    const declared = read('packages/spillway/src/core/errors.ts').match(/^ {2}[A-Z_]+: \d{3},$/gm)
    expect(sections.map(([, code]) => code)).toEqual(facts.codes.map(({ code }) => code))
    expect(sections).toHaveLength(declared.length)
  })

  it('the page of events names each event of the library', () => {
    const [, union] = /type SpillwayEvent =(.*?)\n\n/s.exec(
      read('packages/spillway/src/core/events.ts'),
    )
    const types = [...union.matchAll(/'([a-z-]+\.[a-z-]+)'/g)].map(([, type]) => type)
    const page = read('docs/reference/events.md')
    expect(types.length).toBeGreaterThan(30)
    expect(types.filter((type) => !page.includes(`\`${type}\``))).toEqual([])
  })

  it('the page of metrics has a row for each metric that a gateway exports', async () => {
    const page = read('docs/reference/metrics.md')
    const exported = [...(await exportedMetrics())].filter((name) => name.startsWith('spillway_'))
    const known = (name) => page.includes(`\`${name.replace(/_(bucket|sum|count)$/, '')}\``)
    expect(exported.length).toBeGreaterThan(30)
    expect(exported.filter((name) => !known(name) && !page.includes(`\`${name}\``))).toEqual([])
  })

  it('the page of headers names each header of Spillway in the code', async () => {
    const page = read('docs/reference/headers.md')
    const { stdout } = await run('git', [
      'grep',
      '-hoE',
      "'spillway-[a-z-]+':?",
      '--',
      'packages/*/src/*.ts',
      ':!*.test.ts',
    ])
    const names = new Set(stdout.match(/spillway-[a-z-]+/g))
    names.delete('spillway-gateway') // the name of the tracer
    expect(names.size).toBeGreaterThan(8)
    expect([...names].filter((name) => !page.includes(`\`${name}\``))).toEqual([])
  })

  it('the page of the command line has each command and each of its flags', () => {
    const page = read('docs/reference/cli.md')
    const flags = facts.commands.flatMap(({ options }) => Object.keys(options))
    expect(page.match(/^## /gm)).toHaveLength(facts.commands.length)
    expect(page.match(/^\| `--/gm)).toHaveLength(flags.length)
  })

  it('range and default are read from the end of a comment, also with decimals and examples', () => {
    const comment = '/** Share of calls. Range: 0 to 0.5. Default: 0.2. @example x */'
    expect(readComment(comment)).toEqual({
      meaning: 'Share of calls.',
      range: '0 to 0.5',
      fallback: '0.2',
    })
  })
})
