import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { STARTER_CONFIG } from '../cli/starter-config.js'
import { gatewaySchema, publishedSchema } from './json-schema.js'

const PAGE = new URL('../../../../docs/gateway/configuration.md', import.meta.url)

interface Schema {
  type?: string
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  minItems?: number
  minProperties?: number
  propertyNames?: { pattern: string }
}

const KNOWN = new Set([
  ...['type', 'enum', 'const', 'anyOf', 'properties', 'required', 'additionalProperties', 'items'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'minLength', 'maxLength', 'pattern', 'minItems'],
  ...['minProperties', 'propertyNames', '$schema', 'title', 'description', 'default'],
])

/** The part of JSON Schema that our schema uses. Returns the paths of all problems. */
function problemsIn(value: unknown, schema: Schema, path = ''): string[] {
  for (const keyword of Object.keys(schema)) expect(KNOWN).toContain(keyword)
  if (schema.anyOf !== undefined) {
    const fits = schema.anyOf.some((each) => problemsIn(value, each, path).length === 0)
    return fits ? [] : [path]
  }
  if (schema.enum !== undefined) return schema.enum.includes(value) ? [] : [path]
  if (schema.const !== undefined) return schema.const === value ? [] : [path]
  if (schema.type === undefined) return []
  if (!isOf(schema.type, value)) return [path]
  if (typeof value === 'number') return isWithin(value, schema) ? [] : [path]
  if (typeof value === 'string') {
    const fits = new RegExp(schema.pattern ?? '', 'u').test(value)
    const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema
    return fits && value.length >= minLength && value.length <= maxLength ? [] : [path]
  }
  if (Array.isArray(value)) {
    const few = value.length < (schema.minItems ?? 0) ? [path] : []
    return [
      ...few,
      ...value.flatMap((each, index) => problemsIn(each, schema.items ?? {}, `${path}[${index}]`)),
    ]
  }
  return typeof value === 'object' ? problemsInObject(value as object, schema, path) : []
}

function isOf(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

function isWithin(
  value: number,
  { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity }: Schema,
) {
  return value >= minimum && value <= maximum && value > exclusiveMinimum
}

function problemsInObject(value: object, schema: Schema, path: string): string[] {
  const { properties = {}, required = [], additionalProperties: others = true } = schema
  const missing = required
    .filter((name) => !Object.hasOwn(value, name))
    .map((name) => `${path}.${name}`)
  const few = Object.keys(value).length < (schema.minProperties ?? 0) ? [path] : []
  const inside = Object.entries(value).flatMap(([name, each]) => {
    const at = `${path}.${name}`
    const own = properties[name]
    if (own !== undefined) return problemsIn(each, own, at)
    if (others === false) return [at]
    return others === true ? [] : problemsIn(each, others, at)
  })
  return [...missing, ...few, ...inside]
}

/** Options may be called `description`, so only texts are removed. */
function withoutTexts(value: object): unknown {
  return JSON.parse(JSON.stringify(value), (name, each) =>
    name === 'description' && typeof each === 'string' ? undefined : each,
  )
}

const schema = gatewaySchema() as Schema
const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/```yaml\n(.*?)```/gs)].map(
  ([, each = '']) => each,
)

describe('JSON schema for editors', () => {
  it('the published schema is the one generated from the checks, with texts for the options of the library', () => {
    const published = JSON.parse(publishedSchema())
    const generated = JSON.parse(JSON.stringify(gatewaySchema()))
    expect(published).toMatchObject(generated)
    expect(withoutTexts(published)).toEqual(withoutTexts(generated))
  })

  it('the schema has the default of an option from its check', () => {
    const { properties = {} } = schema
    expect(properties.port).toMatchObject({ default: 8080, description: expect.any(String) })
    expect(properties.expectedPods).toMatchObject({ default: 1 })
    expect(properties.admin).not.toHaveProperty('default')
  })

  it('the schema accepts every example of the documentation and the init file', () => {
    expect(blocks.length).toBeGreaterThan(1)
    for (const text of [...blocks, STARTER_CONFIG])
      expect(problemsIn(parse(text), schema)).toEqual([])
  })

  it.each([
    ['prot: 1', '.prot'],
    ['port: "80"', '.port'],
    ['vendors: {}', '.vendors'],
    ['vendors: { a: { protocol: smtp } }', '.vendors.a.protocol'],
    ['vendors: { a: { url: "http://a" } }', '.vendors.a.protocol'],
    ['vendors: { a: { protocol: openai, key: sk-123 } }', '.vendors.a.key'],
    [
      'vendors: { a: { protocol: openai, breaker: { openMs: 5 seconds } } }',
      '.vendors.a.breaker.openMs',
    ],
    [
      'vendors: { a: { protocol: openai, limits: [{ limit: 0, windowMs: 1m }] } }',
      '.vendors.a.limits[0].limit',
    ],
    [
      'vendors: { a: { protocol: openai, limits: [{ unit: tokns, limit: 2, windowMs: 1m }] } }',
      '.vendors.a.limits[0].unit',
    ],
    ['vendors: { a: { protocol: openai, shed: { when: 1 } } }', '.vendors.a.shed.when'],
    ['routes: [{ path: v1 }]', '.routes[0].path'],
    ['redis: { url: redis://a, tls: { ca: 5 } }', '.redis'],
    ['body: { maxBytes: 1tb }', '.body.maxBytes'],
    ['log: { level: loud }', '.log.level'],
  ])('the schema rejects %s', (text, path) => {
    const written = { vendors: { ok: { protocol: 'openai' } }, ...parse(text) }
    expect(problemsIn(written, schema)).toContain(path)
  })

  it('the schema has and requires the same options as the checks', () => {
    const vendor = schema.properties?.vendors?.additionalProperties as Schema
    expect(vendor.required).toEqual(['protocol'])
    expect(schema.required).toEqual(['vendors'])
    expect(Object.keys(vendor.properties ?? {})).toEqual(
      expect.arrayContaining(['limits', 'breaker', 'retry', 'hedge', 'throttle', 'userLimits']),
    )
    expect(vendor.properties).not.toHaveProperty('classify')
  })
})
