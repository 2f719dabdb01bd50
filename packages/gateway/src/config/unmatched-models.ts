/** Models that the configuration names and no entry of their vendor's `models` matches: probably a mistake. */
import { NamePattern } from 'spillway/internal'
import type { GatewayConfig } from './config.js'

export interface UnmatchedModel {
  readonly vendor: string
  readonly model: string
}

export function unmatchedModels({
  vendors,
  routes,
  jobQueues = [],
}: GatewayConfig): UnmatchedModel[] {
  return vendors.flatMap(({ name, models }) => {
    if (models === undefined) return []
    const patterns = models.map(({ match }) => new NamePattern(match))
    const named = new Set<string>()
    for (const { models: ofRoute = [], targets } of routes) {
      for (const { vendor, model } of targets) {
        if (vendor !== name) continue
        for (const each of model === undefined ? ofRoute : [model]) named.add(each)
      }
    }
    for (const { vendor, model } of jobQueues) {
      if (vendor === name && model !== undefined) named.add(model)
    }
    return [...named]
      .filter((model) => !model.includes('*'))
      .filter((model) => !patterns.some((pattern) => pattern.matches(model)))
      .map((model) => ({ vendor: name, model }))
  })
}
