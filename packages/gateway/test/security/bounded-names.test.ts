/** Names that requests and vendors choose are remembered, so that each is checked once. Their number is bounded. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { maskedName, maskedPath } from '../../src/response/privacy.js'
import { Routes } from '../../src/routing/routes.js'
import { addVendorHeaders, ForwardedHeaders } from '../../src/vendor/forwarded-headers.js'
import { VendorAddresses } from '../../src/vendor/vendor-addresses.js'

const NAMES = 5_000
const MOST_REMEMBERED = 1_000

/** The most entries that any map or set had while names were read. */
let largest = 0
const { set } = Map.prototype
const { add } = Set.prototype

function replace(prototype: object, name: string, value: unknown): void {
  Object.defineProperty(prototype, name, { value, configurable: true, writable: true })
}

beforeEach(() => {
  largest = 0
  replace(
    Map.prototype,
    'set',
    function (this: Map<unknown, unknown>, key: unknown, value: unknown) {
      set.call(this, key, value)
      largest = Math.max(largest, this.size)
      return this
    },
  )
  replace(Set.prototype, 'add', function (this: Set<unknown>, value: unknown) {
    add.call(this, value)
    largest = Math.max(largest, this.size)
    return this
  })
})

afterEach(() => {
  replace(Map.prototype, 'set', set)
  replace(Set.prototype, 'add', add)
})

const config = loadConfig({
  file: 'a.yaml',
  text: 'vendors: { openai: { protocol: openai, url: "http://vendor.example" } }',
  env: {},
})
const routes = new Routes(config)
const forwarded = new ForwardedHeaders({ own: new Set(), credentials: false, compression: false })
const addresses = new VendorAddresses('http://vendor.example', undefined)

it.each<[string, (name: string) => unknown]>([
  [
    'paths of requests',
    (name) => routes.find({ method: 'GET', path: `/v1/${name}`, fromAnthropicClient: false }),
  ],
  ['paths in logs', (name) => maskedPath(`/v1/${name}`)],
  ['names in logs', (name) => maskedName(name)],
  ['header names of requests', (name) => forwarded.of([name, 'value'], undefined)],
  ['header names of answers', (name) => addVendorHeaders([], [name, 'value'], [], addresses)],
])('the gateway remembers at most 1,000 %s', (_, read) => {
  for (let i = 0; i < NAMES; i++) read(`x-name-${i}`)
  expect(largest).toBeGreaterThan(100)
  expect(largest).toBeLessThanOrEqual(MOST_REMEMBERED)
})
