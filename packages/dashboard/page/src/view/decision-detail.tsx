/** One decision: every stage it passed, the numbers it went by, and what would have let it in. */
import type { Signal } from '@preact/signals'
import { countOf, formatMs, formatNumber, formatPreciseTime, spellOut } from '../format'
import { hello } from '../model/live'
import { hrefOf } from '../model/route'
import type { Decision, StageNote } from '../wire'
import { Badge, Empty, Fact, Name, Panel, type Tone } from './bits'
import { lookOfDecision } from './decision-list'
import { Icon, type IconName } from './icons'
import { titleOf, wordsOfCode } from './stage-words'

export function DecisionDetail({ chosen }: { chosen: Signal<Decision | undefined> }) {
  const decision = chosen.value
  if (decision === undefined) {
    return (
      <Panel title="Why" class="why-detail">
        <Empty title="Choose a decision">
          It shows every stage the call passed, the numbers that were used, and what would have let
          it in.
        </Empty>
      </Panel>
    )
  }
  const { tone, icon } = lookOfDecision(decision)
  return (
    <Panel title="Why" note={formatPreciseTime(decision.at)} class="why-detail">
      <div class="stack" data-testid="why-detail">
        <div class="row">
          <Badge tone={tone} icon={icon}>
            {decision.code}
          </Badge>
          <span class="quiet">{wordsOfCode(decision.code)}</span>
        </div>
        <p class="why-sentence">
          <bdi class="name-full">{decision.why}</bdi>
        </p>
        {decision.remedy !== undefined && (
          <div class="remedy">
            <h3>What would have let it in</h3>
            <p>
              <bdi class="name-full">{decision.remedy}</bdi>
            </p>
            {decision.retryAfterMs !== undefined && (
              <p class="note">
                It makes sense to ask again after {formatMs(decision.retryAfterMs)}.
              </p>
            )}
          </div>
        )}
        <Who decision={decision} />
        <Path decision={decision} />
        <Numbers numbers={decision.numbers} />
      </div>
    </Panel>
  )
}

function Who({ decision }: { decision: Decision }) {
  const { guard, lane, user, tier, priority, attempts, tookMs, scope, sharedAgeMs, pod } = decision
  return (
    <dl class="who">
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
      <Fact label="user">{user === undefined ? 'nobody named' : <Name text={user} full />}</Fact>
      {tier !== undefined && (
        <Fact label="tier">
          <Name text={tier} />
        </Fact>
      )}
      <Fact label="priority">{priority}</Fact>
      <Fact label="took">
        {formatMs(tookMs)}, {countOf(attempts, 'attempt')}
      </Fact>
      <Fact label="decided by">
        {scope === 'shared' ? 'what all pods share' : 'this pod alone'}
        {sharedAgeMs !== undefined && `; shared state ${formatMs(sharedAgeMs)} old`}
      </Fact>
      <Fact label="pod">
        <Name text={pod} />
      </Fact>
    </dl>
  )
}

const VERDICTS: Record<StageNote['verdict'], { tone: Tone; icon: IconName; word: string }> = {
  passed: { tone: 'good', icon: 'passed', word: 'passed' },
  waited: { tone: 'warn', icon: 'waited', word: 'passed after waiting' },
  refused: { tone: 'refused', icon: 'refused', word: 'refused' },
  ended: { tone: 'bad', icon: 'warning', word: 'ended here' },
}

function Path({ decision }: { decision: Decision }) {
  const { path, stage, traced, code } = decision
  const order = (hello.value?.stages ?? []).map((row) => row.stage)
  const end = order.indexOf(stage)
  const beyond = order.slice(end + 1)
  return (
    <div>
      <h3>Its way</h3>
      <ol class="path">
        {path.map((note, index) => (
          <Step key={index} note={note} ok={code === 'OK'} />
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
        <p class="note">Noted under load: only its end is known, not the times on its way.</p>
      )}
    </div>
  )
}

function Step({ note, ok }: { note: StageNote; ok: boolean }) {
  const ended = note.verdict === 'ended' && ok
  const { tone, icon, word } = ended
    ? { ...VERDICTS.passed, word: 'answered' }
    : VERDICTS[note.verdict]
  const numbers = telling(note.numbers)
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
  const rows = telling(numbers)
  if (rows.length === 0) return null
  return (
    <div>
      <h3>The numbers it went by</h3>
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

/** What is said above already is left out. */
function telling(numbers: Decision['numbers'] = {}) {
  return Object.entries(numbers).filter(([key]) => key !== 'name' && key !== 'lane')
}
