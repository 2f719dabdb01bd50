// Every page of the site by section, in reading order. The first page of a section is its index.
// A page with `planned: true` is not written yet: it is left out until its file exists and the mark is removed.

import { apiModules } from '../../scripts/site/api-modules.mjs'

export const SECTIONS = [
  {
    text: 'Start',
    folder: 'start',
    items: [
      { text: 'What Spillway is', page: 'index' },
      { text: 'Comparison', page: 'comparison' },
      { text: 'Quickstart: library', page: 'quickstart-library' },
      { text: 'Quickstart: gateway', page: 'quickstart-gateway' },
      { text: 'Tutorial: survive a vendor outage', page: 'tutorial' },
      { text: 'Which mechanisms to use', page: 'which-mechanisms' },
    ],
  },
  {
    text: 'Concepts',
    folder: 'concepts',
    items: [
      { text: 'Overview', page: 'index' },
      { text: 'Shared or local', page: 'shared-or-local' },
      { text: 'The pipeline', page: 'pipeline' },
      { text: 'Lanes and pools', page: 'lanes-and-pools' },
      { text: 'Priorities and deadlines', page: 'priorities-and-deadlines' },
      { text: 'Outcomes', page: 'outcomes' },
      { text: 'When Redis is down', page: 'outages' },
      { text: 'Glossary', page: 'glossary' },
    ],
  },
  {
    text: 'How-to',
    folder: 'how-to',
    items: [
      { text: 'Overview', page: 'index' },
      { text: 'Guard a downstream', page: 'guard' },
      { text: 'fetch and SDKs', page: 'fetch' },
      { text: 'OpenAI', page: 'openai' },
      { text: 'Anthropic', page: 'anthropic' },
      { text: 'Vercel AI SDK', page: 'vercel-ai' },
      { text: 'LangChain', page: 'langchain' },
      { text: 'Servers', page: 'servers' },
      { text: 'User limits', page: 'user-limits' },
      { text: 'Fallbacks', page: 'fallbacks' },
      { text: 'Jobs', page: 'job-queue' },
      { text: 'Streams', page: 'streams' },
      { text: 'Hedging', page: 'hedging' },
      { text: 'Deadlines, also across services', page: 'deadlines' },
      { text: 'Shadow mode', page: 'shadow-mode' },
      { text: 'Custom stages', page: 'custom-stages' },
      { text: 'Testing', page: 'testing' },
      { text: 'Mock vendor', page: 'mock-vendor' },
      {
        text: 'Migrate',
        items: [
          { text: 'From opossum', page: 'migrate-opossum' },
          { text: 'From cockatiel', page: 'migrate-cockatiel' },
          { text: 'From Bottleneck', page: 'migrate-bottleneck' },
          { text: 'From p-limit and p-queue', page: 'migrate-p-limit-p-queue' },
          {
            text: 'From rate-limiter-flexible',
            page: 'migrate-rate-limiter-flexible',
          },
          { text: 'From BullMQ', page: 'migrate-bullmq' },
        ],
      },
      {
        text: 'Single mechanisms',
        items: [
          { text: 'Overview', page: 'mechanisms/index' },
          { text: 'Circuit breaker', page: 'mechanisms/circuit-breaker' },
          { text: 'Shared rate limits', page: 'mechanisms/shared-limits' },
          { text: 'Membership', page: 'mechanisms/membership' },
          { text: 'Load shedding', page: 'mechanisms/load-shedding' },
          { text: 'Bulkhead', page: 'mechanisms/bulkhead' },
          { text: 'Adaptive concurrency', page: 'mechanisms/adaptive-limit' },
          { text: 'Throttle', page: 'mechanisms/throttle' },
          { text: 'Rate limiter', page: 'mechanisms/rate-limiter' },
          { text: 'Timeout', page: 'mechanisms/timeout' },
          { text: 'Retry', page: 'mechanisms/retry' },
          { text: 'Retry budget', page: 'mechanisms/retry-budget' },
          { text: 'Backpressure', page: 'mechanisms/backpressure' },
          { text: 'Pod metrics', page: 'mechanisms/pod-metrics' },
          { text: 'Combining by hand', page: 'mechanisms/combining' },
        ],
      },
    ],
  },
  {
    text: 'Gateway',
    folder: 'gateway',
    items: [
      { text: 'The gateway', page: 'index' },
      { text: 'Configuration', page: 'configuration' },
      { text: 'Fallbacks', page: 'fallbacks' },
      { text: 'Routing by headroom', page: 'routing' },
      { text: 'Key quarantine', page: 'key-quarantine' },
      { text: 'Quotas of LLM vendors', page: 'quotas' },
      { text: 'SDKs behind the gateway', page: 'sdks' },
      { text: 'Reload', page: 'reload' },
      { text: 'Workers', page: 'workers' },
    ],
  },
  {
    text: 'Operations',
    folder: 'operations',
    items: [
      { text: 'Overview', page: 'index' },
      { text: 'Production checklist', page: 'production' },
      { text: 'Kubernetes', page: 'kubernetes' },
      { text: 'Supported platforms', page: 'platforms' },
      { text: 'Redis', page: 'redis' },
      { text: 'Stores', page: 'stores' },
      { text: 'Sizing', page: 'sizing' },
      { text: 'Simulator', page: 'simulator' },
      { text: 'Metrics and alerts', page: 'metrics' },
      { text: 'Tracing', page: 'tracing' },
      { text: 'Dashboard', page: 'dashboard' },
      { text: 'Health', page: 'health' },
      { text: 'The command', page: 'command' },
      { text: 'Operate a fleet', page: 'operating' },
      { text: 'Runbooks', page: 'runbooks' },
      { text: 'Troubleshooting', page: 'troubleshooting' },
      { text: 'Upgrading', page: 'upgrading' },
    ],
  },
  {
    text: 'Reference',
    folder: 'reference',
    items: [
      { text: 'Packages and conventions', page: 'index' },
      { text: 'Library options', page: 'options' },
      { text: 'Gateway options', page: 'gateway-options' },
      { text: 'Errors', page: 'errors' },
      { text: 'Error codes', page: 'error-codes' },
      { text: 'Events', page: 'events' },
      { text: 'Metrics', page: 'metrics' },
      { text: 'HTTP headers', page: 'headers' },
      { text: 'Command line', page: 'cli' },
      { text: 'TypeScript API', page: 'api/index' },
      {
        text: 'Modules',
        items: apiModules().map(({ name, page }) => ({ text: name, page: `api/${page}` })),
      },
    ],
  },
  {
    text: 'Project',
    folder: 'project',
    items: [
      { text: 'Overview', page: 'index' },
      { text: 'Performance', page: 'performance' },
      { text: 'Comparison: measured', page: 'comparison-results' },
      { text: 'Soak test', page: 'soak-results' },
      { text: 'Fault table', page: 'fault-results' },
      { text: 'Mutation scores', page: 'mutation-scores' },
      { text: 'Stability and versions', page: 'versioning' },
      { text: 'Changelog', page: 'changelog' },
      { text: 'Contributing', page: 'contributing' },
      { text: 'Security', page: 'security' },
      { text: 'Internals', page: 'internals' },
    ],
  },
]

/** The pages of one section as `folder/page`, those that are planned left out. */
export function pagesOf({ folder, items }) {
  return items.flatMap((item) =>
    item.items
      ? pagesOf({ folder, items: item.items })
      : item.planned
        ? []
        : [`${folder}/${item.page}`],
  )
}

/** Each section has a sidebar of its own. */
export function sidebar() {
  return Object.fromEntries(
    SECTIONS.map(({ text, folder, items }) => [
      `/${folder}/`,
      [{ text, items: written(folder, items) }],
    ]),
  )
}

/** The top bar: the first page of each section. */
export function navigation() {
  return SECTIONS.map(({ text, folder }) => ({
    text,
    link: `/${folder}/`,
    activeMatch: `^/${folder}/`,
  }))
}

function written(folder, items) {
  return items
    .filter(({ planned }) => !planned)
    .map(({ text, page, items: inner }) =>
      inner
        ? { text, items: written(folder, inner) }
        : { text, link: `/${folder}/${page.replace(/(^|\/)index$/, '$1')}` },
    )
    .filter(({ items: inner }) => inner === undefined || inner.length > 0)
}
