import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import { isObject } from '../../../protocol/json.ts'
import { kinds, listKinds, nextCatalogueId, readList, type Catalogue, type Item, type ListKind } from './catalogue.ts'
import type { Link } from '../links/link.ts'

/**
 * Reads all that an upstream lists to a link. One broken list does not take the others with it: it is as it was before.
 * @param before what it listed when it was last read
 * @param patience how long the other lists are waited for when one is there, in ms
 * @param warn told, in a sentence, what failed or was left out
 * @returns `whole`: no list failed
 * @throws UpstreamError when none of its lists can be had
 */
export async function readCatalogue (
  link: Link,
  before: Catalogue | undefined,
  patience: number,
  warn: (sentence: string) => void
): Promise<{ catalogue: Catalogue; whole: boolean }> {
  const {
    key: { capabilityClass },
    version,
    serverInfo,
    instructions,
    capabilities
  } = link
  const lists = {} as Record<ListKind, readonly Item[]>
  const extras = {} as Record<ListKind, string>
  const listed = kinds.filter((kind) => isObject(capabilities[listKinds[kind].capability]))
  const reading = listed.map(async (kind) => await readOne(link, kind, warn))
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    const begin = (): void => {
      timer ??= setTimeout(() => {
        resolve('late')
      }, patience).unref()
    }
    for (const each of reading) each.then(begin, () => {})
  })
  const outcomes = await Promise.allSettled(reading.map(async (each) => await Promise.race([each, late])))
  clearTimeout(timer)
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
  const gone = failures.find((error) => !(error instanceof UpstreamError && error.fault === 'timeout'))
  if (gone !== undefined || (failures.length > 0 && failures.length === outcomes.length)) throw gone ?? failures[0]
  let whole = true
  for (const kind of kinds) {
    const at = listed.indexOf(kind)
    const outcome = outcomes[at]
    const list = outcome?.status === 'fulfilled' && outcome.value !== 'late' ? outcome.value : undefined
    if (at !== -1 && (!list || list.failure !== undefined)) {
      whole = false
      warn(`${listKinds[kind].method} failed: ${list?.failure ?? 'no answer yet'}`)
    }
    lists[kind] = list?.items ?? (at === -1 ? [] : (before?.lists[kind] ?? []))
    extras[kind] = list?.extra ?? (at === -1 ? '{}' : (before?.extras[kind] ?? '{}'))
  }
  return { catalogue: { id: nextCatalogueId(), capabilityClass, version, serverInfo, instructions, capabilities, lists, extras }, whole }
}

/** One list; without items, what its server says of why there are none. A server that has resources need not have templates. */
async function readOne (
  link: Link,
  kind: ListKind,
  warn: (sentence: string) => void
): Promise<{ items?: readonly Item[]; extra?: string; failure?: string }> {
  try {
    return await readList(kind, async (method, params) => await link.request(method, params), warn)
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    return error.code === code.methodNotFound ? { items: [], extra: '{}' } : { failure: error.message }
  }
}
