import { newNameProblem } from '../../../schemas/names.ts'

const cleaned = (text: string): string =>
  text.normalize('NFC').replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[._-]+|[._-]+$/g, '').slice(0, 64)

/** The name that a server of a catalogue gets here: the first of these texts that can be one, without what a name may not hold. */
export function localName (...texts: string[]): string {
  for (const text of texts) {
    const name = cleaned(text)
    if (newNameProblem(name) === undefined) return name
  }
  return `${cleaned(texts[0] ?? '')}-server`.replace(/^-/, '')
}

/** The name for an entry of a registry: `weather` for `io.github.ada/weather`. Where that is reserved, the namespace joins it. */
export function nameOfEntry (name: string): string {
  const [namespace = '', own = ''] = name.split('/', 2)
  return localName(own, `${namespace.split('.').at(-1) ?? ''}-${own}`)
}
