import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { bodyOf } from './answer-by.ts'

interface Asked { readonly model: string, readonly input: string[], readonly dimensions?: number, readonly headers: IncomingHttpHeaders }

/** Words that mean the same to it. */
const meanings = [['weather', 'forecast', 'umbrella'], ['letter', 'mail', 'correspondence'], ['parcel', 'ship', 'freight']]

/**
 * An embeddings API as OpenAI has it, whose embeddings are bags of words, of which some mean the same. It proves the path, and says
 * nothing of how well tools are found.
 */
export class EmbeddingsApi {
  url = ''
  readonly asked: Asked[] = []
  /** What it answers instead: an HTTP status, `slow` for nothing until `release` is called. */
  mode: 'good' | 'slow' | number = 'good'
  /** Headers of failures. */
  headers: Record<string, string> = {}
  /** Requests with such a text are refused. */
  refused: RegExp | undefined
  readonly #held: Array<() => void> = []
  readonly #server = createServer((req, res) => {
    void (async () => {
      const asked = JSON.parse(await bodyOf(req)) as Omit<Asked, 'headers'>
      this.asked.push({ ...asked, headers: req.headers })
      const { mode, refused } = this
      const status = refused !== undefined && asked.input.some((text) => refused.test(text)) ? 400 : mode
      if (typeof status === 'number') {
        res.writeHead(status, this.headers).end(JSON.stringify({ error: { message: `no good, ${String(req.headers.authorization)}` } }))
        return
      }
      if (status === 'slow') await new Promise<void>((resolve) => { this.#held.push(resolve) })
      const size = asked.dimensions ?? 64
      const data = asked.input.map((text, index) => ({ object: 'embedding', index, embedding: embedding(text, size) }))
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ object: 'list', model: asked.model, data: data.reverse() }))
    })().catch(() => { res.destroy() })
  })

  async listen (t: Cleanup): Promise<this> {
    this.url = `http://127.0.0.1:${await listen(t, this.#server)}/v1`
    return this
  }

  release (): void { for (const resolve of this.#held.splice(0)) resolve() }

  /** The texts that it was asked to embed, over all requests. */
  get texts (): string[] { return this.asked.flatMap(({ input }) => input) }
}

function embedding (text: string, size: number): number[] {
  const numbers = new Array<number>(size).fill(0.001)
  for (const word of text.toLowerCase().match(/[a-z]+/g) ?? []) {
    const meant = meanings.find((each) => each.includes(word))?.[0] ?? word
    const at = createHash('sha256').update(meant).digest().readUInt32BE(0) % size
    numbers[at] = (numbers[at] ?? 0) + 1
  }
  return numbers
}
