/** Warnings about a valid configuration: access for everyone, and models that no entry of `models` matches. */
import { readFileSync } from 'node:fs'
import { NamePattern } from 'spillway/internal'
import type { GatewayConfig } from './config.js'
import type { ConfigError, ConfigProblem } from './config-error.js'
import { configError } from './document/error-report.js'
import { readDocument } from './document/yaml-document.js'
import { CLOSE_ACCESS, openAccess } from './open-access.js'

/** A model that the configuration names and no entry of its vendor's `models` matches: probably a mistake. */
interface UnmatchedModel {
  readonly vendor: string
  readonly model: string
}

function unmatchedModels({ vendors, routes, jobQueues = [] }: GatewayConfig): UnmatchedModel[] {
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

/** Written like mistakes, at their places in the file. Undefined: there are none. */
export function configWarnings(file: string, config: GatewayConfig): ConfigError | undefined {
  const unmatched = unmatchedModels(config)
  const open = openAccess(config)
  if (unmatched.length === 0 && open === undefined) return undefined
  const text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
  const written = readDocument(text)
  const { routes, jobQueues } = (written.value ?? {}) as Record<string, unknown>
  const problems: ConfigProblem[] = unmatched.map(({ vendor, model }) => {
    const path = pathOf(model, routes, '.routes') ?? pathOf(model, jobQueues, '.jobQueues')
    const message = `warning: no entry of vendors.${vendor}.models matches the model '${model}', so the vendor's own limits hold for it`
    return { path: path ?? `.vendors.${vendor}.models`, message }
  })
  if (open !== undefined) {
    const at = written.places.has('.host') ? {} : ({ at: 'outside' } as const)
    problems.push({ path: '.host', message: `warning: ${open}: ${CLOSE_ACCESS}`, ...at })
  }
  return configError(file, text, written, problems)
}

/** The path of the first equal text in a value. */
function pathOf(text: string, value: unknown, path: string): string | undefined {
  if (value === text) return path
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = pathOf(text, each, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}
