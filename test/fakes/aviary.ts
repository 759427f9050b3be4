import { randomBytes } from 'node:crypto'

const hex = (text: string): string => Buffer.from(text).toString('hex')
const escaped = (text: string, prefix: string, width: number): string =>
  [...text].map((letter) => `${prefix}${(letter.codePointAt(0) ?? 0).toString(16).padStart(width, '0')}`).join('')

/** What of a text is the same in the base64 of whatever it stands in, at each of the three places that it can begin at. */
function base64 (text: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)])
    const whole = bytes.subarray(0, bytes.length - bytes.length % 3).toString('base64')
    const inner = before === 0 ? whole : whole.slice(4)
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

/** Where a canary was found: which, in what form, and what stands around it. */
export interface Sighting { name: string, form: string, around: string }

/**
 * The canaries of one test: secrets that are told apart by name. Each begins and ends with a mark of this run, so that a part of one is
 * found, too, and one search finds all: as it is, in base64, in hex, percent-encoded and escaped.
 */
export class Aviary {
  readonly #mark = `q${randomBytes(7).toString('hex')}`
  readonly #planted = new Map<string, string>()
  /** Secrets that were not made here (login tokens, keys), with their names. */
  readonly #others = new Map<string, string>()
  readonly #forms = new Map<string, string>([
    [this.#mark, 'plain'],
    ...base64(this.#mark).map((text): [string, string] => [text, 'base64']),
    [hex(this.#mark), 'hex'],
    [escaped(this.#mark, '%', 2), 'percent-encoded'],
    [escaped(this.#mark, '\\u', 4), 'escaped']
  ])

  /** A new secret of this name: letters and digits. The last four, which masks show, are no part of its marks. */
  plant (name: string): string {
    const beginning = `${this.#mark}n${String(this.#planted.size).padStart(3, '0')}`
    this.#planted.set(name, beginning)
    return `${beginning}${this.#mark}${randomBytes(3).toString('hex')}`
  }

  /** A secret that somebody else made, looked for as a whole and by its last part. */
  watch (name: string, secret: string): string {
    for (const part of [secret, secret.slice(-43)]) this.#others.set(part, name)
    return secret
  }

  /** Whether a text holds a certain canary, as it is: that it arrived where it should. */
  isIn (name: string, text: string): boolean {
    const beginning = this.#planted.get(name)
    return beginning !== undefined && text.includes(beginning)
  }

  /** All canaries in a text. */
  find (text: string): Sighting[] {
    const found: Sighting[] = []
    const lower = text.toLowerCase()
    const tell = (name: string, form: string, at: number): void => {
      found.push({ name, form, around: text.slice(Math.max(0, at - 80), at + 80) })
    }
    for (const [needle, form] of this.#forms) {
      const where = form === 'base64' ? text : lower
      for (let at = where.indexOf(needle); at !== -1; at = where.indexOf(needle, at + needle.length)) {
        const name = form === 'plain' ? [...this.#planted].find(([, beginning]) => lower.startsWith(beginning, at))?.[0] : undefined
        // The end of one whose beginning was just told is not another one.
        if (name === undefined && form === 'plain' && lower.startsWith(this.#mark, at - this.#mark.length - 4)) continue
        tell(name ?? 'a part of one', form, at)
      }
    }
    for (const [needle, name] of this.#others) {
      const at = text.indexOf(needle)
      if (at !== -1) tell(name, 'plain', at)
    }
    return found
  }
}
