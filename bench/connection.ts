import { connect, type Socket } from 'node:net'

/** An HTTP response: header names in lower case, the whole body without its chunk framing. */
export interface HttpResponse { status: number, headers: Map<string, string>, body: string }

interface PendingRequest { resolve: (response: HttpResponse) => void, reject: (error: Error) => void }

const headEnd = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')
/** Time without data after which a request fails, in ms. */
const socketTimeout = 30_000

/**
 * A keep-alive HTTP/1.1 connection to a port of this machine, with one request at a time. It is a minimal client, so that it takes little
 * CPU from the processes that are measured.
 */
export class Connection {
  readonly #socket: Socket
  #pending: PendingRequest | undefined
  #received: Buffer = Buffer.alloc(0)

  private constructor (socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setTimeout(socketTimeout, () => { socket.destroy(new Error(`no answer for ${socketTimeout} ms`)) })
    socket.on('data', (chunk) => { this.#receive(chunk) })
    socket.on('error', (error) => { this.#fail(error) })
    socket.on('close', () => { this.#fail(new Error('the connection was closed')) })
  }

  static async open (port: number): Promise<Connection> {
    return await new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new Connection(socket))
      })
    })
  }

  /** Sends one request, given as its text. Rejects where the connection ends, or no data arrives for 30 s. */
  async send (request: string): Promise<HttpResponse> {
    return await new Promise((resolve, reject) => {
      if (this.#socket.destroyed) throw new Error('the connection is closed')
      this.#pending = { resolve, reject }
      this.#socket.write(request)
    })
  }

  close (): void {
    this.#socket.destroy()
  }

  #receive (chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const response = parse(this.#received)
    if (response === undefined) return
    this.#received = Buffer.alloc(0)
    const pending = this.#pending
    this.#pending = undefined
    pending?.resolve(response)
  }

  #fail (error: Error): void {
    this.#pending?.reject(error)
    this.#pending = undefined
  }
}

/** A complete response; undefined while bytes are missing. */
function parse (bytes: Buffer): HttpResponse | undefined {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers = new Map(lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  }))
  const rest = bytes.subarray(end + headEnd.length)
  const body = headers.get('transfer-encoding') === 'chunked' ? unchunk(rest) : cut(rest, Number(headers.get('content-length') ?? 0))
  return body === undefined ? undefined : { status: Number(first.slice(9, 12)), headers, body: body.toString() }
}

function cut (bytes: Buffer, length: number): Buffer | undefined {
  return bytes.length < length ? undefined : bytes.subarray(0, length)
}

function unchunk (bytes: Buffer): Buffer | undefined {
  const chunks: Buffer[] = []
  let at = 0
  for (;;) {
    const end = bytes.indexOf(lineEnd, at)
    if (end < 0) return undefined
    const start = end + lineEnd.length
    const size = Number.parseInt(bytes.toString('latin1', at, end), 16)
    if (bytes.length < start + size + lineEnd.length) return undefined
    if (size === 0) return Buffer.concat(chunks)
    chunks.push(bytes.subarray(start, start + size))
    at = start + size + lineEnd.length
  }
}
