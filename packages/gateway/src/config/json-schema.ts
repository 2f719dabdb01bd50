/** What a configuration may look like, for editors: made of the checks that read it. */
import { documentationUrl } from 'spillway/internal'
import { type JsonSchema, schemaOf } from 'spillway/options'
import { gatewayShape } from './shapes/gateway-shape.js'

export function gatewaySchema(): JsonSchema {
  const nothing = { env: {}, readFile: () => '' }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Spillway gateway',
    description: `spillway.yaml: vendors, routes, callers; see ${documentationUrl('gateway/configuration')}`,
    ...schemaOf(gatewayShape(nothing)),
  }
}
