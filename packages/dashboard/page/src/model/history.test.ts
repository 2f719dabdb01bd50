import { describe, expect, it } from 'vitest'
import { Track, TwoTracks } from './history'

describe('history tracks of the page', () => {
  it('a history track keeps a fixed number of steps', () => {
    const track = new Track(1_000, 5)
    for (let second = 100; second < 110; second++) track.set(second * 1_000, { calls: second })
    const [times, calls] = track.read(['calls'], 0, 109_000)
    expect(times).toEqual([105, 106, 107, 108, 109])
    expect(calls).toEqual([105, 106, 107, 108, 109])
  })

  it('a history track shows a gap where no data arrived', () => {
    const track = new Track(1_000, 5)
    for (let second = 100; second < 105; second++) track.set(second * 1_000, { calls: 1 })
    track.set(107_000, { calls: 2 })
    expect(track.read(['calls'], 103_000, 107_000)[1]).toEqual([1, 1, null, null, 2])
  })

  it('a history track continues after the history loaded from the gateway', () => {
    const track = new Track(1_000, 10)
    track.load({ stepMs: 1_000, fromAt: 100_000, columns: { calls: [1, null, 3] } })
    track.set(103_000, { calls: 4 })
    expect(track.read(['calls'], 100_000, 103_000)[1]).toEqual([1, null, 3, 4])
  })

  it('an old value does not overwrite a newer step of a history track', () => {
    const track = new Track(1_000, 3)
    track.set(110_000, { calls: 7 })
    track.set(101_000, { calls: 1 })
    expect(track.read(['calls'], 108_000, 110_000)[1]).toEqual([null, null, 7])
  })

  it('a coarse step of a history track is the mean of rates and the maximum of other figures, including loaded ones', () => {
    const tracks = new TwoTracks({
      fineStepMs: 1_000,
      finePoints: 5,
      coarseStepMs: 10_000,
      coarsePoints: 5,
    })
    for (let second = 100; second < 120; second++) {
      if (second === 115) {
        const columns = { p99Ms: [500] }
        tracks.load({ stepMs: 10_000, fromAt: 110_000, columns })
      }
      tracks.set(second * 1_000, { calls: second < 110 ? 10 : 20, p99Ms: second })
    }
    expect(tracks.coarse.read(['calls'], 100_000, 119_000)[1]).toEqual([10, 20])
    expect(tracks.coarse.read(['p99Ms'], 100_000, 119_000)[1]).toEqual([109, 500])
    expect(tracks.for(5_000, 5)).toBe(tracks.fine)
    expect(tracks.for(6_000, 5)).toBe(tracks.coarse)
  })
})
