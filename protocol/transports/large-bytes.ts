// Memory that the system has not provided yet is provided page by page while it is first written: 16 MiB take up to 60 ms on a virtual
// machine. What is made in one piece, as a string is, is made in memory that was used before.
import { isAscii, isUtf8 } from 'node:buffer'
import { MessageChannel } from 'node:worker_threads'
import type { Pause } from '../large-message.ts'
import { joinInSteps } from '../yield.ts'
import { transportLimits } from './transport.ts'

/** A port without another end: what is moved to it is gone. */
const { port1: nowhere } = new MessageChannel()
nowhere.close()

/** Frees the memory of a buffer at once: the garbage collector may take long to find it. The buffer is empty from then on. */
function free ({ buffer }: Buffer): void { nowhere.postMessage(buffer, [buffer as ArrayBuffer]) }

/** Size above which Node keeps a string outside of the heap, in memory of the allocator that buffers have theirs from. */
const outsideHeap = 1024 * 1024
const page = 4096
/** How long one step provides memory, in ms. */
const step = 0.5
let isPrimed = false

/** Makes the system provide memory, in steps, and leaves it to the allocator, which hands it out for the next thing of that size. */
async function provide (size: number, pause: Pause): Promise<void> {
  // The allocator (glibc's `malloc`) keeps what is freed in sizes in which something was freed before.
  if (!isPrimed) free(Buffer.allocUnsafeSlow(transportLimits.message))
  isPrimed = true
  const memory = Buffer.allocUnsafeSlow(size)
  let begun = performance.now()
  for (let at = 0; at < size; at += page) {
    memory[at] = 0
    if (performance.now() - begun < step) continue
    await pause()
    begun = performance.now()
  }
  free(memory)
}

/**
 * The text of large UTF-8, without holding the event loop for long.
 * @param chunks its bytes; the array is emptied, so that they are in memory no longer than they are needed
 * @param pause called between steps
 * @throws SyntaxError when it is not UTF-8; what `pause` rejects with
 */
export async function largeTextOf (chunks: Buffer[], pause: Pause): Promise<string> {
  const isJoined = chunks.length > 1
  const bytes = await joinInSteps(chunks, pause)
  chunks.length = 0
  await pause()
  try {
    if (!isAscii(bytes)) {
      if (!isUtf8(bytes)) throw new SyntaxError('it is not UTF-8')
      return bytes.toString()
    }
    if (bytes.length > outsideHeap) await provide(bytes.length, pause)
    return bytes.toString('latin1')
  } finally {
    // A single chunk may share its memory with others.
    if (isJoined) free(bytes)
  }
}
