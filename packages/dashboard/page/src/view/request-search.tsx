/** Finds one request by its id on all pods, if the page has no decision of it. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { countOf, formatMs, formatPreciseTime } from '../format'
import { explainRequest } from '../model/acting'
import type { Decision, Explanation, RequestSummary } from '../wire'
import { Fact, Name } from './elements'

/** The search starts after this time without a key press. */
const TYPED_MS = 400
/** Shorter ones are parts of an id. */
const SHORTEST_ID = 8
const REQUEST_ID = /^[\w.:-]{1,128}$/

export interface RequestSearch {
  state: 'none' | 'searching' | 'found' | 'unknown' | 'failed'
  explanation: Explanation | undefined
  decisions: readonly Decision[]
}

const NONE: RequestSearch = { state: 'none', explanation: undefined, decisions: [] }

export function useRequestSearch(text: string): RequestSearch {
  const search = useSignal<RequestSearch>(NONE)
  const id = text.trim()
  useEffect(() => {
    search.value = NONE
    if (id.length < SHORTEST_ID || !REQUEST_ID.test(id)) return undefined
    let wanted = true
    const timer = setTimeout(async () => {
      search.value = { ...NONE, state: 'searching' }
      const answer = await answerOf(id)
      if (wanted) search.value = answer
    }, TYPED_MS)
    return () => {
      wanted = false
      clearTimeout(timer)
    }
  }, [id])
  return search.value
}

async function answerOf(id: string): Promise<RequestSearch> {
  try {
    const explanation = await explainRequest(id)
    const { request, decisions } = explanation
    const isFound = request !== undefined || decisions.length > 0
    const newest = decisions.toReversed()
    return { state: isFound ? 'found' : 'unknown', explanation, decisions: newest }
  } catch {
    return { ...NONE, state: 'failed' }
  }
}

export function RequestAnswer({ search }: { search: RequestSearch }) {
  const { state, explanation } = search
  if (state === 'none') return null
  return (
    <div class="request-answer" role="status" data-testid="request-answer">
      {state === 'searching' && <p class="note">Searching all pods …</p>}
      {state === 'failed' && <p class="note">The gateway did not answer.</p>}
      {state === 'unknown' && <Unknown explanation={explanation as Explanation} />}
      {explanation?.request !== undefined && <Summary request={explanation.request} />}
    </div>
  )
}

function Unknown({ explanation: { podsQueried, podsAnswered } }: { explanation: Explanation }) {
  const silent = podsQueried - podsAnswered
  return (
    <p class="note">
      No pod knows a request with this id. Each pod remembers its last 2,000 requests.
      {silent > 0 && ` ${countOf(silent, 'pod')} did not answer.`}
    </p>
  )
}

function Summary({ request }: { request: RequestSummary }) {
  const { status, code, why, at, tookMs, pod, user, model, route, vendorAttempts, degraded } =
    request
  return (
    <dl class="who">
      <Fact label="answer">
        {status}
        {code !== undefined && ` ${code}`}
      </Fact>
      {why !== undefined && <Fact label="reason">{why}</Fact>}
      <Fact label="time">
        {formatPreciseTime(at)}, took {formatMs(tookMs)}
      </Fact>
      <Fact label="pod">
        <Name text={pod} />
      </Fact>
      {user !== undefined && (
        <Fact label="user">
          <Name text={user} />
        </Fact>
      )}
      {model !== undefined && (
        <Fact label="model">
          <Name text={model} />
        </Fact>
      )}
      {route !== undefined && (
        <Fact label="route">
          <Name text={route} />
        </Fact>
      )}
      {vendorAttempts.length > 0 && (
        <Fact label="vendors">
          <Name
            text={vendorAttempts
              .map(({ vendor, attempts }) => `${vendor} (${countOf(attempts, 'attempt')})`)
              .join(', then ')}
            full
          />
        </Fact>
      )}
      {degraded !== undefined && (
        <Fact label="fallback">
          <Name text={`${degraded.step}, because of ${degraded.reason}`} />
        </Fact>
      )}
    </dl>
  )
}
