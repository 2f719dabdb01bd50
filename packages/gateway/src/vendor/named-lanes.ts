/** The lanes of a vendor that the configuration names: in its `models`, in routes, fallbacks and job queues. */
import type { GatewayConfig, VendorConfig } from '../config/config.js'
import { keyNameOf, laneName, OTHER_LANE } from './model-lanes.js'

type Named = Pick<GatewayConfig, 'routes' | 'jobQueues'>

export function namedLanes({ routes, jobQueues = [] }: Named, vendor: VendorConfig): Set<string> {
  const lanes = new Set<string>()
  const add = (model: string | undefined, key: string | undefined) => {
    const lane = laneName({ model, key: keyNameOf(vendor, key) })
    if (lane !== undefined) lanes.add(lane)
  }
  for (const { models = [], targets } of routes) {
    for (const target of targets) {
      if (target.vendor !== vendor.name) continue
      const named = target.model === undefined ? models.filter(isExact) : [target.model]
      // A request that names no key may use each of them.
      const keys = target.key === undefined ? vendor.keys.map(({ name }) => name) : [target.key]
      for (const key of keys.length === 0 ? [undefined] : keys) {
        for (const model of named) add(model, key)
        // For requests without a model, and for models without a lane of their own.
        add(undefined, key)
        add(OTHER_LANE, key)
      }
    }
  }
  for (const { match } of vendor.models ?? []) {
    if (isExact(match)) for (const { name } of vendor.keys) add(match, name)
    if (isExact(match) && vendor.keys.length === 0) add(match, undefined)
  }
  for (const { vendor: name, model, key } of jobQueues) if (name === vendor.name) add(model, key)
  return lanes
}

function isExact(model: string): boolean {
  return !model.includes('*')
}
