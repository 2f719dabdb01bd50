import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBackpressureQueue, queueReadableStream, queueWritable } from 'spillway/local'

const queue = createBackpressureQueue<string>({ size: 4 })

// From a Node stream to a Web stream. Each end may be of either kind.
const written = pipeline(Readable.from(['a', 'b', 'c', 'd', 'e', 'f']), queueWritable(queue))
for await (const item of queueReadableStream(queue)) console.log(item, queue.length <= 4)
await written
