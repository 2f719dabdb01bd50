// The other generated pages of docs/reference: error codes, metrics, the command line.

import { ERROR_TEXTS } from './error-texts.mjs'

/** @param {{ code: string, status: number, stages: string[] }[]} codes */
export function errorCodesPage(codes) {
  return [
    '# Error codes',
    '',
    'What each code of a [`SpillwayError`](errors.md) means, how to check the cause, and what to do. `error.url` is the address',
    'of the section. [When to retry](errors.md#when-to-retry) has the wait that each code asks for.',
    '',
    ...codes.flatMap(({ code, status, stages }) => {
      const { cause, check, fix, page, anchor } = ERROR_TEXTS[code]
      const link = `../${page}${anchor === undefined ? '' : `#${anchor}`}`
      return [
        `## ${code}`,
        '',
        `Status ${status}.${stages.length > 0 ? ` Stages: ${stages.map((each) => `\`${each}\``).join(', ')}.` : ''}`,
        '',
        `- **Cause.** ${cause}`,
        `- **Check.** ${check}`,
        `- **Fix.** ${fix}`,
        `- **More.** [${titleOf(page)}](${link})`,
        '',
      ]
    }),
  ].join('\n')
}

function titleOf(page) {
  const name = page
    .replace(/\/index\.md$/, '')
    .replace(/\.md$/, '')
    .split('/')
    .at(-1)
  const words = name.replaceAll('-', ' ')
  return words[0].toUpperCase() + words.slice(1)
}

/** @param {{ name: string, dotted?: string, type: string, help: string }[]} metrics */
export function metricsPage(metrics) {
  return [
    '# Metrics',
    '',
    'Every metric that a gateway exports at `/metrics`. Those of guards and job queues are also exported by a program that uses',
    '`spillway/metrics`: see [Metrics and alerts](../operations/metrics.md), which also has their labels. Metrics of Node.js itself are not listed.',
    '',
    '| Prometheus | OpenTelemetry | Type | Meaning |',
    '|---|---|---|---|',
    ...metrics.map(({ name, dotted, type, help }) => {
      const other = dotted === undefined ? '' : `\`${dotted}\``
      return `| \`${name}\` | ${other} | ${type ?? 'gauge'} | ${cell(help)} |`
    }),
    '',
  ].join('\n')
}

/** @param {readonly object[]} commands the command table of the gateway */
export function commandLinePage(commands) {
  return [
    '# Command line',
    '',
    'The command `spillway` of the package `@spillway/gateway`, as its `--help` describes it. [The command](../operations/command.md)',
    'explains how to use it.',
    '',
    ...commands.flatMap(commandSection),
  ].join('\n')
}

function commandSection({ name, summary, usage, options, notes }) {
  return [
    `## ${name}`,
    '',
    `${sentence(summary)}`,
    '',
    '```text',
    ...usage.map((line) => `spillway ${name} ${line}`.trimEnd()),
    '```',
    '',
    '| Option | Meaning |',
    '|---|---|',
    ...Object.entries(options).map(([flag, { short, value, oneOf, about }]) => {
      const shown = `--${flag}${value === undefined ? '' : ` ${value}`}`
      const words = oneOf === undefined ? '' : ` (${oneOf.join(', ')})`
      const text = `\`${shown}\`${short === undefined ? '' : `, \`-${short}\``}`
      return `| ${text} | ${cell(`${about}${words}`)} |`
    }),
    '',
    ...(notes === undefined ? [] : ['```text', notes.trimEnd(), '```', '']),
  ]
}

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}.`.replace(/\.\.$/, '.')
}

function cell(text) {
  return text.replace(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('<', '&lt;')
}
