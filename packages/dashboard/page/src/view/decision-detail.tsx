/** One decision: its reason, the stages of the call, the numbers, and the remedy. */
import type { Signal } from '@preact/signals'
import {
  countOf,
  formatCount,
  formatMs,
  formatNumber,
  formatPreciseTime,
  formatTime,
  spellOut,
} from '../format'
import { decisions, decisionsVersion, hello } from '../model/live'
import { hrefOf } from '../model/route'
import type { Decision, StageNote } from '../wire'
import { codeOf, lookOfDecision } from './decision-list'
import { Badge, Empty, Fact, Name, Panel, type Tone } from './elements'
import { Icon, type IconName } from './icons'
import { titleOf, wordsOfCode } from './stage-text'

interface DecisionDetailProps {
  chosen: Signal<Decision | undefined>
  /** Selects another decision. */
  show: (decision: Decision) => void
}

export function DecisionDetail({ chosen, show }: DecisionDetailProps) {
  const decision = chosen.value
  if (decision === undefined) {
    return (
      <Panel title="Why">
        <Empty title="Select a decision">
          Its stages, the numbers behind it, and what would have admitted the call appear here.
        </Empty>
      </Panel>
    )
  }
  const { tone, icon } = lookOfDecision(decision)
  const { retryAfterMs, remedy } = decision
  return (
    <Panel title="Why" note={formatPreciseTime(decision.at)}>
      <div class="stack" data-testid="why-detail">
        <div class="row">
          <Badge tone={tone} icon={icon}>
            {codeOf(decision)}
          </Badge>
          <span class="quiet">{wordsOfCode(decision.code)}</span>
        </div>
        <p class="why-sentence">
          <bdi class="name-full">{decision.why}</bdi>
        </p>
        <Requested decision={decision} />
        {remedy !== undefined && (
          <div class="remedy">
            <h3>What would have admitted it</h3>
            <p>
              <bdi class="name-full">{remedy}</bdi>
            </p>
            {retryAfterMs !== undefined && (
              <p class="note">Suggested to the caller: retry after {formatMs(retryAfterMs)}.</p>
            )}
          </div>
        )}
        <Facts decision={decision} />
        <SameRequest decision={decision} show={show} />
        <Path decision={decision} />
        <Numbers numbers={decision.numbers} />
      </div>
    </Panel>
  )
}

/** Units that the call requested of a limit, and units that were left. */
function Requested({ decision: { requested } }: { decision: Decision }) {
  if (requested === undefined) return null
  const { unit, left, limit, untilAt } = requested
  return (
    <p data-testid="requested">
      Requested <b>{formatCount(requested.requested)}</b> <Name text={unit} />,{' '}
      <b>{formatCount(left)}</b> of {formatCount(limit)} left
      {untilAt !== undefined && ` until ${formatTime(untilAt)}`}.
    </p>
  )
}

function Facts({ decision }: { decision: Decision }) {
  const { guard, lane, user, tier, priority, attempts, tookMs, scope, sharedAgeMs, pod } = decision
  return (
    <dl class="who">
      {decision.requestId !== undefined && (
        <Fact label="request id">
          <bdi class="mono name-full">{decision.requestId}</bdi>
        </Fact>
      )}
      {guard === '' ? (
        <Fact label="refused by">the gateway itself, before any guard</Fact>
      ) : (
        <Fact label="vendor">
          <a href={hrefOf({ page: 'guards', guard, lane: undefined })}>
            <Name text={guard} />
          </a>
          {lane !== '' && (
            <>
              , lane <Name text={lane} />
            </>
          )}
        </Fact>
      )}
      <Replaced decision={decision} />
      <Fact label="user">{user === undefined ? 'not given' : <Name text={user} full />}</Fact>
      {tier !== undefined && (
        <Fact label="tier">
          <Name text={tier} />
        </Fact>
      )}
      <Fact label="priority">{priority}</Fact>
      <Fact label="took">
        {formatMs(tookMs)}, {countOf(attempts, 'attempt')}
      </Fact>
      <Fact label="state">
        {scope === 'shared' ? 'shared by all pods' : 'of this pod only'}
        {sharedAgeMs !== undefined && `; shared state ${formatMs(sharedAgeMs)} old`}
      </Fact>
      <Fact label="pod">
        <Name text={pod} />
      </Fact>
    </dl>
  )
}

function Replaced({ decision: { replaces } }: { decision: Decision }) {
  if (replaces === undefined) return null
  const { guard, lane, code, status } = replaces
  return (
    <Fact label="in place of">
      <a href={hrefOf({ page: 'guards', guard, lane: undefined })}>
        <Name text={guard} />
      </a>
      {lane !== undefined && lane !== '' && (
        <>
          , lane <Name text={lane} />
        </>
      )}
      : {code} {status}
    </Fact>
  )
}

/** Other calls of this request, such as the one that a fallback replaced. */
function SameRequest({ decision, show }: { decision: Decision; show: (each: Decision) => void }) {
  // Subscribes to the log, because more calls of the request may arrive.
  decisionsVersion.value
  const others = decisions.ofRequest(decision.requestId).filter((each) => each !== decision)
  if (others.length === 0) return null
  return (
    <div>
      <h3>Other calls of this request</h3>
      <ul class="same-request">
        {others.map((each) => (
          <li key={`${each.pod} ${each.id}`} class={`tone-${lookOfDecision(each).tone}`}>
            <button type="button" class="small" onClick={() => show(each)}>
              {codeOf(each)}
            </button>{' '}
            <Name text={each.guard === '' ? 'gateway' : each.guard} />{' '}
            <span class="quiet">{formatPreciseTime(each.at)}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}

const VERDICTS: Record<StageNote['verdict'], { tone: Tone; icon: IconName; word: string }> = {
  passed: { tone: 'good', icon: 'passed', word: 'passed' },
  waited: { tone: 'warn', icon: 'waited', word: 'passed after waiting' },
  refused: { tone: 'refused', icon: 'refused', word: 'refused' },
  ended: { tone: 'bad', icon: 'warning', word: 'failed' },
}

function Path({ decision }: { decision: Decision }) {
  const { path, stage, traced, code } = decision
  if (path.length === 0) return null
  const order = (hello.value?.stages ?? []).map((row) => row.stage)
  const end = order.indexOf(stage)
  const beyond = order.slice(end + 1)
  return (
    <div>
      <h3>Stages</h3>
      <ol class="path">
        {path.map((note, index) => (
          <Step key={index} note={note} />
        ))}
        {code !== 'OK' && beyond.length > 0 && (
          <li class="step tone-quiet">
            <span class="step-sign">
              <Icon name="none" size={13} />
            </span>
            <span class="quiet">
              not reached: {beyond.map((each) => titleOf(each).toLowerCase()).join(', ')}
            </span>
          </li>
        )}
      </ol>
      {!traced && (
        <p class="note">
          Recorded under load: only the last stage is known, without the times of the others.
        </p>
      )}
    </div>
  )
}

function Step({ note }: { note: StageNote }) {
  const isAnswered =
    note.verdict === 'ended' &&
    (note.stage === 'fallback' ||
      note.numbers?.outcome === 'success' ||
      note.numbers?.outcome === 'slow')
  const { tone, icon, word } = isAnswered
    ? { ...VERDICTS.passed, word: 'answered' }
    : VERDICTS[note.verdict]
  const numbers = furtherNumbers(note.numbers)
  return (
    <li class={`step tone-${tone}`}>
      <span class="step-sign">
        <Icon name={icon} size={13} />
      </span>
      <span class="step-name">
        {titleOf(note.stage)}
        {note.attempt > 1 && <span class="quiet"> attempt {note.attempt}</span>}
      </span>
      <span class="step-word">{word}</span>
      <span class="quiet step-scope">{note.scope}</span>
      <span class="step-at mono">{note.atMs === undefined ? '' : `+${formatMs(note.atMs)}`}</span>
      {numbers.length > 0 && (
        <span class="step-numbers quiet">
          {numbers
            .map(([key, value]) => `${spellOut(key)} ${formatNumber(key, value)}`)
            .join(' · ')}
        </span>
      )}
    </li>
  )
}

function Numbers({ numbers }: { numbers: Decision['numbers'] }) {
  const rows = furtherNumbers(numbers)
  if (rows.length === 0) return null
  return (
    <div>
      <h3>Numbers behind the decision</h3>
      <dl>
        {rows.map(([key, value]) => (
          <Fact key={key} label={spellOut(key)}>
            <bdi class="name-full">{formatNumber(key, value)}</bdi>
          </Fact>
        ))}
      </dl>
    </div>
  )
}

/** Without the numbers that are shown above. */
function furtherNumbers(numbers: Decision['numbers'] = {}) {
  return Object.entries(numbers).filter(([key]) => key !== 'name' && key !== 'lane')
}
