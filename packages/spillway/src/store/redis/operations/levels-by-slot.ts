/**
 * Levels of user limits in a cluster. Levels of a request that share a slot are charged together.
 * Of several slots the one with the most specific level is first, because it refuses most often.
 * The next one follows only if that one granted the request. A request that is refused later gets a
 * refund of what it was charged before. A refund that fails counts as spent.
 */
import type { LevelCharge, LevelReply, LevelRequest, LevelStore } from '../../port.js'

/** The levels of a request that share a slot. */
interface Part {
  readonly slot: number
  readonly request: LevelRequest
  /** The number, from 1, of each level in the whole request. */
  readonly numbers: readonly number[]
}

/** A request that is checked slot by slot. */
interface SplitRequest {
  readonly parts: readonly Part[]
  /** How many parts have been charged. */
  charged: number
  /**
   * The earliest time at which a part was charged. The clocks of two nodes differ slightly; with an earlier time a refund
   * may return too little, never too much.
   */
  chargedAtUs: number
  /** Of all levels that have been charged, as in a reply. */
  readonly fullAtUs: number[]
  /** The refusal, or the tightest of the levels charged so far. */
  reply: LevelReply | undefined
}

export function levelsBySlot(together: LevelStore, slotOf: (key: string) => number): LevelStore {
  /** Checks the next part of each request; those of one slot share one round trip. */
  async function check(requests: readonly SplitRequest[]): Promise<void> {
    await all(bySlot(requests, nextPart), async (ofOneSlot) => {
      const replies = await together.check(ofOneSlot.map((one) => nextPart(one).request))
      for (const [index, split] of ofOneSlot.entries()) {
        advance(split, replies[index] as LevelReply)
      }
    })
  }

  async function refund(parts: readonly Part[]): Promise<void> {
    await all(
      bySlot(parts, (part) => part),
      async (ofOneSlot) => {
        await together.refund(ofOneSlot.map(({ request }) => request))
      },
    )
  }

  /** In the background, and a failure counts as spent. */
  function refundCharged(requests: readonly SplitRequest[]): void {
    const parts = requests.flatMap(({ parts, charged, chargedAtUs, fullAtUs }) =>
      parts.slice(0, charged).map((part) => stamped(part, chargedAtUs, fullAtUs)),
    )
    if (parts.length > 0) refund(parts).catch(() => {})
  }

  return {
    async check(requests) {
      const split = requests.map((request) => splitRequest(request, slotOf))
      try {
        for (let left = split; left.length > 0; left = left.filter(isUndecided)) await check(left)
      } catch (failure) {
        // The caller gets an error, so the request is not charged.
        refundCharged(split)
        throw failure
      }
      refundCharged(split.filter(({ reply }) => reply?.refusedBy !== 0))
      return split.map(({ reply, chargedAtUs: atUs, fullAtUs }) => {
        const allowed = reply?.refusedBy === 0
        return { ...(reply as LevelReply), atUs, fullAtUs: allowed ? fullAtUs : [] }
      })
    },
    refund: (requests) =>
      refund(
        requests.flatMap((request) =>
          partsOf(request, slotOf).map((part) => stamped(part, request.atUs, request.fullAtUs)),
        ),
      ),
  }
}

/** Handles all slots in parallel. When all have ended, fails if any of them failed. */
async function all<T>(slots: Map<number, T[]>, send: (each: T[]) => Promise<void>): Promise<void> {
  const ends = await Promise.allSettled([...slots.values()].map(send))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

function bySlot<T>(items: readonly T[], partOf: (item: T) => Part): Map<number, T[]> {
  const slots = new Map<number, T[]>()
  for (const item of items) {
    const { slot } = partOf(item)
    const others = slots.get(slot)
    if (others === undefined) slots.set(slot, [item])
    else others.push(item)
  }
  return slots
}

function splitRequest(request: LevelRequest, slotOf: (key: string) => number): SplitRequest {
  return {
    parts: partsOf(request, slotOf),
    charged: 0,
    chargedAtUs: Number.POSITIVE_INFINITY,
    fullAtUs: [],
    reply: undefined,
  }
}

/** The most specific first. */
function partsOf({ levels, cost }: LevelRequest, slotOf: (key: string) => number): Part[] {
  const found = new Map<number, { levels: LevelCharge[]; numbers: number[]; rank: number }>()
  for (const [index, level] of levels.entries()) {
    const slot = slotOf(level.key)
    const part = found.get(slot) ?? { levels: [], numbers: [], rank: 0 }
    found.set(slot, part)
    part.levels.push(level)
    part.numbers.push(index + 1)
    part.rank = Math.max(part.rank, level.rank ?? 0)
  }
  return [...found]
    .sort(([, one], [, other]) => other.rank - one.rank)
    .map(([slot, part]) => ({
      slot,
      request: { levels: part.levels, cost },
      numbers: part.numbers,
    }))
}

/** With the times of the reply, as a refund needs them. */
function stamped(
  part: Part,
  atUs: number | undefined,
  fullAtUs: readonly number[] | undefined,
): Part {
  const own = fullAtUs && part.numbers.map((number) => fullAtUs[number - 1] as number)
  return { ...part, request: { ...part.request, atUs, fullAtUs: own } }
}

function nextPart({ parts, charged }: SplitRequest): Part {
  return parts[charged] as Part
}

function isUndecided({ parts, charged, reply }: SplitRequest): boolean {
  return reply?.refusedBy === 0 && charged < parts.length
}

function advance(split: SplitRequest, reply: LevelReply): void {
  const { numbers } = nextPart(split)
  const numberOf = (level: number) => numbers[level - 1] ?? 0
  const renumbered = {
    ...reply,
    refusedBy: numberOf(reply.refusedBy),
    tightest: numberOf(reply.tightest),
  }
  const before = split.reply
  if (renumbered.refusedBy === 0) split.charged++
  split.chargedAtUs = Math.min(reply.atUs, split.chargedAtUs)
  for (const [index, fullAtUs] of reply.fullAtUs.entries()) {
    split.fullAtUs[(numbers[index] as number) - 1] = fullAtUs
  }
  const tighter =
    before === undefined || renumbered.refusedBy > 0 || renumbered.remaining < before.remaining
  if (tighter) split.reply = renumbered
}
