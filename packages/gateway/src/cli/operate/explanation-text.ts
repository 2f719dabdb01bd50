/** Formats the explanation of a request for a terminal. */
import type { Decision, Explanation, RequestSummary } from '@spillway/dashboard'

export function explanationText(explanation: Explanation): string {
  const { requestId, request, decisions } = explanation
  if (request === undefined && decisions.length === 0) return unknownText(explanation)
  const parts = [
    ...(request === undefined ? [] : [requestText(requestId, request)]),
    ...decisions.map((each, index) => decisionText(each, index + 1)),
  ]
  const isUnrecorded = decisions.length === 0 && (request?.vendorAttempts.length ?? 0) > 0
  if (isUnrecorded) {
    parts.push('Its decisions were not recorded: under load, pods record only some calls.')
  }
  return `${parts.join('\n\n')}\n`
}

function unknownText({ requestId, podsQueried, podsAnswered }: Explanation): string {
  const silent = podsQueried - podsAnswered
  const unanswered = silent > 0 ? ` ${silent} of ${podsQueried + 1} pods did not answer.` : ''
  return (
    `No pod has data about the request ${requestId}.${unanswered}\n` +
    'Each pod remembers its last 2,000 requests until it restarts. Older ones are in the logs.\n'
  )
}

function requestText(requestId: string, request: RequestSummary): string {
  const { status, code, why, vendorAttempts, degraded, user, tier, model, route, pod } = request
  const facts = [
    ['came in', `${timeOf(request.at)}, took ${duration(request.tookMs)}`],
    ['pod', pod],
    ['user', user === undefined ? undefined : tier === undefined ? user : `${user} (${tier})`],
    ['model', model],
    ['route', route],
    [
      'tried',
      vendorAttempts.map(({ vendor, attempts }) => `${vendor} (${attempts}x)`).join(', then '),
    ],
    ['answered by', degraded && `the fallback ${degraded.step}, because of ${degraded.reason}`],
    ['reason', why],
  ] as const
  const lines = facts.flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : `  ${name.padEnd(12)}${plain(value)}`,
  )
  return [`request ${requestId}: ${status}${code === undefined ? '' : ` ${code}`}`, ...lines].join(
    '\n',
  )
}

function decisionText(decision: Decision, number: number): string {
  const { guard, lane, code, status, stage, scope, why, remedy, replaces, requested } = decision
  const where = guard === '' ? 'the gateway' : lane === '' ? guard : `${guard}, lane ${lane}`
  const end = status === undefined ? code : `${code} ${status}`
  const lines = [
    `${number}. ${where}: ${end} at stage ${stage} (${scope}), after ${duration(decision.tookMs)}`,
    `   ${why}`,
    replaces &&
      `   in place of ${replaces.guard}: ${replaces.code} ${replaces.status ?? ''}`.trimEnd(),
    requested &&
      `   ${requested.unit}: ${requested.requested} requested, ${requested.left} of ${requested.limit} left` +
        (requested.untilAt === undefined ? '' : ` until ${timeOf(requested.untilAt)}`),
    remedy && `   would be admitted with: ${remedy}`,
    `   ${pathText(decision)}`,
  ]
  return lines.flatMap((line) => (line === undefined ? [] : plain(line))).join('\n')
}

function pathText({ path, traced }: Decision): string {
  if (!traced) return 'stages: only the last one was recorded'
  const steps = path.map(({ stage, attempt, verdict, atMs }) => {
    const which = attempt > 1 ? ` (attempt ${attempt})` : ''
    const at = atMs === undefined ? '' : ` +${duration(atMs)}`
    return `${stage}${which} ${verdict}${at}`
  })
  return steps.length === 0 ? 'stages: none' : `stages: ${steps.join(', ')}`
}

function timeOf(at: number): string {
  return new Date(at).toISOString()
}

function duration(ms: number): string {
  return ms < 1_000 ? `${Number(ms.toFixed(1))} ms` : `${Number((ms / 1_000).toFixed(1))} s`
}

/** Callers choose these names, so they are sanitised. */
function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '\uFFFD')
}
