// The table of events in docs/reference/events.md, from the comments of the type SpillwayEvent.

import ts from 'typescript'
import { titleOf } from './pages.mjs'

/** The page about the mechanism that emits the events, by their type or its first part. */
const EVENT_PAGES = {
  bulkhead: 'how-to/mechanisms/bulkhead.md',
  limiter: 'how-to/mechanisms/rate-limiter.md',
  timeout: 'how-to/mechanisms/timeout.md',
  retry: 'how-to/mechanisms/retry.md',
  breaker: 'how-to/mechanisms/circuit-breaker.md',
  key: 'gateway/key-quarantine.md',
  lanes: 'concepts/lanes-and-pools.md',
  'guard.no-timeout': 'how-to/mechanisms/timeout.md',
  'guard.would-have-refused': 'how-to/shadow-mode.md',
  store: 'concepts/outages.md',
  stream: 'how-to/streams.md',
  shedder: 'how-to/mechanisms/load-shedding.md',
  'limit.learned': 'how-to/mechanisms/shared-limits.md',
  'limit.changed': 'how-to/mechanisms/adaptive-limit.md',
  hedge: 'how-to/hedging.md',
  fallback: 'how-to/fallbacks.md',
  feature: 'how-to/fallbacks.md',
  pod: 'operations/operating.md',
  operator: 'operations/operating.md',
  job: 'how-to/job-queue.md',
  'job-queue': 'how-to/job-queue.md',
  callback: 'how-to/guard.md',
}

/**
 * @param {string} source of packages/spillway/src/core/events.ts
 * @returns {{ types: string[], comment: string, fields: { name: string, comment: string, values: string[] }[] }[]}
 */
export function readEvents(source) {
  const file = ts.createSourceFile('events.ts', source, ts.ScriptTarget.Latest, true)
  const aliases = new Map(
    file.statements
      .filter(ts.isTypeAliasDeclaration)
      .map((each) => [each.name.text, ts.isUnionTypeNode(each.type) ? [...each.type.types] : []]),
  )
  return aliases.get('SpillwayEvent').map((member) => {
    // TypeScript attaches no comments to the members of a union.
    const comments = source.slice(member.getFullStart(), member.getStart()).match(COMMENT) ?? []
    const before = comments.at(-1) ?? commentBefore(source, member.getFullStart())
    const [type, ...fields] = member.members
    return {
      types: literalsOf(type.type, aliases),
      comment: plain(before),
      fields: fields.map((field) => ({
        name: field.name.text,
        comment: plain(ts.getJSDocCommentsAndTags(field)[0]?.getText() ?? ''),
        values: literalsOf(field.type, aliases),
      })),
    }
  })
}

const COMMENT = /\/\*\*.*?\*\//gs

/** A comment in front of the `|` of a member belongs to the member. */
function commentBefore(source, position) {
  return /(\/\*\*(?:(?!\*\/).)*\*\/)\s*\|\s*$/s.exec(source.slice(0, position))?.[1] ?? ''
}

function plain(comment) {
  return comment
    .replace(/^\/\*\*/, '')
    .replace(/\*\/$/, '')
    .replace(/\s*\n\s*\*\s*/g, ' ')
    .trim()
}

function literalsOf(type, aliases) {
  const parts = ts.isUnionTypeNode(type) ? type.types : [type]
  return parts.flatMap((part) => {
    if (ts.isLiteralTypeNode(part) && ts.isStringLiteral(part.literal)) return [part.literal.text]
    const named = ts.isTypeReferenceNode(part) ? aliases.get(part.typeName.getText()) : undefined
    return (named ?? []).flatMap((each) => literalsOf(each, aliases))
  })
}

export function eventsTable(events) {
  return [
    '| `type` | When | Fields |',
    '|---|---|---|',
    ...events.map(({ types, comment, fields }) => {
      const names = types.map((type) => `\`${type}\``).join(', ')
      const page = pageOf(types[0])
      const when = `${cell(comment)} See [${titleOf(page).toLowerCase()}](../${page}).`
      return `| ${names} | ${when} | ${fields.map(fieldText).join(', ')} |`
    }),
  ].join('\n')
}

export function pageOf(type) {
  return EVENT_PAGES[type] ?? EVENT_PAGES[type.split('.')[0]]
}

function fieldText({ name, comment, values }) {
  const about = comment || values.map((value) => `\`${value}\``).join(', ')
  const text = about.replace(/\.$/, '').replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())
  return `\`${name}\`${text === '' ? '' : ` (${cell(text)})`}`
}

function cell(text) {
  return text.replace(/(?<!\\)\|/g, '\\|').replaceAll('<', '&lt;')
}
