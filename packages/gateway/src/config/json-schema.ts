/** JSON Schema of the configuration, for editors, generated from the checks. */
import { readFileSync } from 'node:fs'
import { documentationUrl } from 'spillway/internal'
import { type JsonSchema, schemaOf } from 'spillway/options'
import { gatewayShape } from './shapes/gateway-shape.js'

/** The schema of the checks. Descriptions of the library's options are added to the published file. */
export function gatewaySchema(): JsonSchema {
  const nothing = { env: {}, readFile: () => '' }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Spillway gateway',
    description: `spillway.yaml: vendors, routes, callers; see ${documentationUrl('gateway/configuration')}`,
    ...schemaOf(gatewayShape(nothing)),
  }
}

/** The published schema, with a description for every option. `npm run docs` writes the file. */
export function publishedSchema(): string {
  return readFileSync(new URL('../../schema.json', import.meta.url), 'utf8')
}
