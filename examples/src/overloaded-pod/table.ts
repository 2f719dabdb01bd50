/** Both acts side by side. */
import { count, milliseconds, percent, perSecond, seconds } from './numbers.js'
import type { Line } from './paint.js'
import { PATIENCE_MS, PHASES } from './scenario.js'
import type { Summary } from './summary.js'

const LABEL_WIDTH = 38
const COLUMN_WIDTH = 16

interface Row {
  label: string
  /** Undefined in a heading row. */
  value?: (summary: Summary) => string
}

const { before, overload, after } = PHASES

const ROWS: readonly Row[] = [
  { label: 'Goodput: answers in time' },
  { label: offered(before), value: ({ goodput }) => perSecond(goodput.before) },
  { label: offered(overload), value: ({ goodput }) => perSecond(goodput.overload) },
  { label: offered(after), value: ({ goodput }) => perSecond(goodput.after) },
  { label: 'Back to normal after the overload', value: recovery },
  { label: 'Clients who came in the overload' },
  { label: '  answered in time', value: (summary) => percent(summary.overload.answered) },
  { label: '  refused at once', value: (summary) => percent(summary.overload.refused) },
  { label: '  failed', value: (summary) => percent(summary.overload.failed) },
  {
    label: `  timed out (they wait ${PATIENCE_MS / 1_000} s)`,
    value: (summary) => percent(summary.overload['timed out']),
  },
  { label: '  answer took, p50', value: ({ answerP50Ms }) => time(answerP50Ms) },
  { label: '  answer took, p99', value: ({ answerP99Ms }) => time(answerP99Ms) },
  { label: '  refusal took, p99', value: ({ refusalP99Ms }) => time(refusalP99Ms) },
  {
    label: 'Vendor calls for each request let in',
    value: ({ callsPerRequest }) => callsPerRequest.toFixed(2),
  },
  { label: 'Peak in flight at the vendor', value: ({ peakInFlight }) => count(peakInFlight) },
]

/** One title per summary. The last column is highlighted. */
export function table(
  titles: readonly string[],
  summaries: readonly Summary[],
  width: number,
): Line[] {
  const fullWidth = LABEL_WIDTH + COLUMN_WIDTH * summaries.length
  const narrow = width < fullWidth
  const columnWidth = narrow ? Math.floor(width / summaries.length) : COLUMN_WIDTH

  const values = (texts: readonly string[]): Line =>
    texts.map((text, index) => {
      const piece = { text: text.padStart(columnWidth) }
      return index === texts.length - 1 ? { ...piece, colour: 'bold' } : piece
    })
  /** The values are beside the label, or below it on a narrow terminal. */
  const row = (label: string, texts: readonly string[]): Line[] => {
    const labelled: Line = [{ text: label.padEnd(LABEL_WIDTH) }]
    return narrow ? [labelled, values(texts)] : [[...labelled, ...values(texts)]]
  }

  return [
    ...(narrow ? [values(titles)] : row('', titles)),
    [{ text: '─'.repeat(Math.min(width, fullWidth)), colour: 'dim' }],
    ...ROWS.flatMap(({ label, value }) =>
      value === undefined ? [[{ text: label }]] : row(label, summaries.map(value)),
    ),
  ]
}

function offered({ name, offered: rate }: (typeof PHASES)[keyof typeof PHASES]): string {
  return `  ${name}, ${perSecond(rate)} offered`
}

function recovery({ recoveryMs }: Summary): string {
  if (recoveryMs === undefined) return `not in ${(after.endMs - after.startMs) / 1_000} s`
  return recoveryMs === 0 ? 'at once' : seconds(recoveryMs)
}

function time(valueMs: number | undefined): string {
  return valueMs === undefined ? '–' : milliseconds(valueMs)
}
