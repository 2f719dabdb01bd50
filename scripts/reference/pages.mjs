// The other generated pages of docs/reference: error codes, metrics, the command line.

import { ERROR_TEXTS } from './error-texts.mjs'
import { gatewayErrorsSections } from './gateway-error-texts.mjs'

/** @param {{ code: string, status: number, stages: string[] }[]} codes */
export function errorCodesPage(codes) {
  return [
    '# Error codes',
    '',
    'What each code of a [`SpillwayError`](errors.md) means, how to check the cause, and what to do. `error.url` is the address',
    'of the section. [When to retry](errors.md#when-to-retry) has the wait that each code asks for. The gateway has',
    '[codes of its own](#errors-of-the-gateway).',
    '',
    ...codes.flatMap(({ code, status, stages }) => {
      const texts = ERROR_TEXTS[code]
      if (texts === undefined) {
        throw new Error(
          `scripts/reference/error-texts.mjs: add cause, check, fix and page of ${code}`,
        )
      }
      const { cause, check, fix, page, anchor } = texts
      const link = `../${page}${anchor === undefined ? '' : `#${anchor}`}`
      return [
        `## ${code}`,
        '',
        `Status ${status}.${stages.length > 0 ? ` Stages: ${stages.map((each) => `\`${each}\``).join(', ')}.` : ''}`,
        '',
        `- **Cause.** ${cause}`,
        `- **Check.** ${check}`,
        `- **Fix.** ${fix}`,
        `- **More.** [${titleOf(anchor ?? page)}](${link})`,
        '',
      ]
    }),
    '## INVALID_OPTIONS',
    '',
    'No refusal: an [`OptionsError`](errors.md#optionserror), thrown when options are checked.',
    '',
    '- **Cause.** Options of a guard or a mechanism are invalid, or a function got an invalid value.',
    '- **Check.** `error.problems` has the path of each option, and what was expected.',
    '- **Fix.** Correct these options. [Library options](options.md) has the type and range of each.',
    '',
    ...gatewayErrorsSections(),
  ].join('\n')
}

/** The name of a page or a heading, from its path or anchor. */
export function titleOf(page) {
  const name = page
    .replace(/\/index\.md$/, '')
    .replace(/\.md$/, '')
    .split('/')
    .at(-1)
  const words = name.replaceAll('-', ' ')
  return words[0].toUpperCase() + words.slice(1)
}

/** @param {{ name: string, dotted?: string, type: string, help: string, labelNames: string[] }[]} metrics */
export function metricsPage(metrics) {
  return [
    '# Metrics',
    '',
    'Every metric that a gateway exports at `/metrics`. Those with a name in OpenTelemetry are also exported by a program that',
    'uses `spillway/metrics`, with the label `guard` in place of `vendor`: see [Metrics and alerts](../operations/metrics.md). Those',
    'that begin with `gen_ai_` need `telemetry.genAi`. Metrics of Node.js itself are not listed.',
    '',
    '| Prometheus | OpenTelemetry | Type | Labels | Meaning |',
    '|---|---|---|---|---|',
    ...metrics.map(({ name, dotted, type, labelNames, help }) => {
      const other = dotted === undefined ? '' : `\`${dotted}\``
      const labels = labelNames.map((label) => `\`${label}\``).join(', ')
      return `| \`${name}\` | ${other} | ${type} | ${labels} | ${cell(help)} |`
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
