// test-group: io

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { project } from '../../packages/spillway/dist/core/project.js'
import { SpillwayError } from '../../packages/spillway/dist/index.js'
import { exportedMetrics } from '../metric-names.mjs'
import { root } from '../run-command.mjs'
import { descriptionProblems, readFacts } from './build-reference.mjs'
import { readComment } from './comments.mjs'
import { CONNECTION_ERRORS } from './gateway-error-texts.mjs'
import { readOption } from './gateway-options.mjs'
import { REQUEST_HEADERS, RESPONSE_HEADERS } from './header-texts.mjs'

const read = (path) => readFileSync(join(root, path), 'utf8')
const facts = await readFacts()

describe('generated reference', () => {
  it('every option, error code, event, header, metric and flag has a description', () => {
    expect(descriptionProblems(facts)).toEqual([])
  })

  it('a missing description is a problem, for each kind of entry', () => {
    const without = (changes) => descriptionProblems({ ...facts, ...changes })
    const [option, ...options] = facts.options
    expect(without({ options: [{ ...option, comment: '' }, ...options] })).toEqual([
      `${option.type}.${option.path}: no description`,
    ])
    const [section, ...sections] = facts.gatewayOptions
    const bare = { ...section.options[0], schema: { type: 'integer' } }
    const gatewayOptions = [
      { ...section, options: [bare, ...section.options.slice(1)] },
      ...sections,
    ]
    expect(without({ gatewayOptions })).toEqual(['spillway.yaml: port: no description'])
    expect(without({ codes: [...facts.codes, { code: 'NEW' }] })).toEqual(['NEW: no description'])
    const event = { ...facts.events[0], types: ['bulkhead.new'], comment: '' }
    expect(without({ events: [...facts.events, event] })).toEqual([
      'event bulkhead.new: no description',
    ])
    expect(without({ metrics: [{ name: 'spillway_new', help: '' }] })).toEqual([
      'spillway_new: no description',
    ])
    const command = { name: 'new', options: { flag: { about: '' } } }
    expect(without({ commands: [...facts.commands, command] })).toEqual([
      'spillway new --flag: no description',
    ])
    expect(without({ withHeaders: `${facts.withHeaders} 'spillway-new'` })).toEqual([
      'header spillway-new: no description in scripts/reference/header-texts.mjs',
    ])
    expect(without({ answering: `${facts.answering} code: 'NEW_CODE'` })).toEqual([
      'NEW_CODE: no description in scripts/reference/gateway-error-texts.mjs',
    ])
  })

  it('the page of options has a row for each public option of the library', () => {
    const rows = read('docs/reference/options.md').match(/^\| `/gm)
    expect(facts.options.length).toBeGreaterThan(400)
    expect(rows).toHaveLength(facts.options.length)
  })

  it('the page of gateway options has a row for each option of the published schema', () => {
    const rows = read('docs/reference/gateway-options.md').match(/^\| `/gm)
    const options = facts.gatewayOptions.flatMap((section) => section.options)
    expect(options.length).toBeGreaterThan(280)
    expect(rows).toHaveLength(options.length)
  })

  it('every option of the published schema, which editors read, has a description', () => {
    const bare = []
    const visit = (schema, path) => {
      if (typeof schema !== 'object' || schema === null) return
      for (const [name, option] of Object.entries(schema.properties ?? {})) {
        if (!option.description) bare.push(`${path}${name}`)
        visit(option, `${path}${name}.`)
      }
      for (const each of schema.anyOf ?? []) visit(each, path)
      visit(schema.items, path)
      visit(schema.additionalProperties, path)
    }
    visit(JSON.parse(read('packages/gateway/schema.json')), '')
    expect(bare).toEqual([])
  })

  it('rows of gateway options have the type, default and range of the checks', () => {
    const cells = (path) => {
      const options = facts.gatewayOptions.flatMap((section) => section.options)
      return readOption(options.find((option) => option.path === path))
    }
    expect(cells('drain.graceMs')).toMatchObject({
      type: 'duration',
      fallback: '30 seconds',
      range: 'from 0 ms',
    })
    expect(cells('server.maxUrlBytes')).toMatchObject({ type: 'size', fallback: '8 KB' })
    // Of the library, with the gateway's default.
    expect(cells('jobQueues.NAME.maxSize')).toMatchObject({ fallback: '10,000' })
    expect(cells('vendors.NAME.breaker.maxOpenMs')).toMatchObject({
      meaning: 'The longest open time that `openFactor` can lead to.',
      fallback: 'ten times `openMs`',
      range: 'from `openMs`',
    })
  })

  it('the page of error codes has a section for each code of the library', () => {
    const sections = [...read('docs/reference/error-codes.md').matchAll(/^## ([A-Z_]+)$/gm)]
    const declared = read('packages/spillway/src/core/errors.ts').match(/^ {2}[A-Z_]+: \d{3},$/gm)
    const codes = facts.codes.map(({ code }) => code)
    expect(sections.map(([, code]) => code)).toEqual([...codes, 'INVALID_OPTIONS'])
    expect(codes).toHaveLength(declared.length)
  })

  it('the page of error codes has cause, check and fix of each connection error of the gateway', () => {
    const source = read('packages/gateway/src/vendor/vendor-error.ts')
    const [, union] = /type VendorErrorCode =(.*?)\n\n/s.exec(source)
    const [, notConnected] = /NOT_CONNECTED.*?\[(.*?)\]/s.exec(source)
    const codes = [...`${union}${notConnected}`.matchAll(/'([A-Z_]+)'/g)]
      .map(([, code]) => code)
      .filter((code) => !code.startsWith('UND_ERR_'))
    const page = read('docs/reference/error-codes.md')
    expect(codes).toContain('STREAM_CUT_OFF')
    expect(codes.toSorted()).toEqual(Object.keys(CONNECTION_ERRORS).toSorted())
    for (const code of codes) {
      const { cause, check, fix } = CONNECTION_ERRORS[code]
      expect(page).toContain(`| \`${code}\` | ${cause} | ${check} | ${fix} |`)
    }
  })

  it('every error carries the URL of its section', () => {
    const page = read('docs/reference/error-codes.md')
    for (const { code } of facts.codes) {
      const explain = () => ''
      const error = new SpillwayError({ code, stage: 'call', scope: 'local', explain })
      const { url } = JSON.parse(JSON.stringify(error))
      expect(url).toBe(
        `${project.documentation}/reference/error-codes#${code.toLowerCase().replaceAll('_', '-')}`,
      )
      expect(page).toContain(`\n## ${code}\n`)
    }
  })

  it('the page of events names each event of the library', () => {
    const [, union] = /type SpillwayEvent =(.*?)\n\n/s.exec(
      read('packages/spillway/src/core/events.ts'),
    )
    const types = [...union.matchAll(/type:((?:\s*\|?\s*'[a-z-]+\.[a-z-]+')+)/g)].flatMap(
      ([, all]) => all.match(/[a-z-]+\.[a-z-]+/g),
    )
    const page = read('docs/reference/events.md')
    expect(types.length).toBeGreaterThan(40)
    expect(facts.events.flatMap((event) => event.types)).toEqual(types)
    expect(types.filter((type) => !page.includes(`\`${type}\``))).toEqual([])
  })

  it('the page of metrics has a row for each metric that a gateway exports', async () => {
    const page = read('docs/reference/metrics.md')
    const exported = [...(await exportedMetrics())].filter((name) => name.startsWith('spillway_'))
    const known = (name) => page.includes(`\`${name.replace(/_(bucket|sum|count)$/, '')}\``)
    expect(exported.length).toBeGreaterThan(30)
    expect(exported.filter((name) => !known(name) && !page.includes(`\`${name}\``))).toEqual([])
  })

  it('the page of metrics has the type and labels of each metric', () => {
    const rows = read('docs/reference/metrics.md').match(/^\| `.*$/gm)
    expect(rows).toHaveLength(facts.metrics.length)
    for (const { type, labelNames } of facts.metrics) {
      expect(type).toMatch(/^(counter|gauge|histogram)$/)
      expect(labelNames).toBeInstanceOf(Array)
    }
  })

  it('the page of headers has a row for each header', () => {
    const rows = read('docs/reference/headers.md').match(/^\| `/gm)
    const texts = [...Object.keys(REQUEST_HEADERS), ...Object.keys(RESPONSE_HEADERS)]
    expect(texts.length).toBeGreaterThan(18)
    expect(rows).toHaveLength(texts.length)
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
