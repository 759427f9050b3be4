import type { Snapshot } from '../../../db/store.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { isSameCatalogue, makeStaticCatalogue, type Catalogue } from '../../../protocol/lists.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { Response } from '../../../protocol/message.ts'
import type { Provider } from '../../../protocol/provider.ts'
import type { GroupMember } from '../../../schemas/settings.ts'
import type { BuiltInSkill } from '../../../schemas/skills.ts'
import type { RegisteredProvider } from '../../settings/index.ts'
import { byKey } from './items.ts'
import { requestedItemKey } from './provider.ts'
import { toReadResourceResult, fileDigestAndSize, skillUri } from './skill-files.ts'

/** The provider's name. No server has it, since names of servers do not start with `$`. */
const skillProviderName = '$skills'

/** A skill as listed to clients. */
interface SkillEntry { readonly uri: string, readonly [member: string]: unknown }

/** The entry of a skill in `skills/list`. */
const entryOf = memoized(({ name, frontmatter, files }: BuiltInSkill): SkillEntry => ({
  uri: skillUri(name),
  frontmatter,
  resources: Object.entries(files).map(
    ([path, base64]) => ({ uri: skillUri(name, path), ...fileDigestAndSize(base64) })
  )
}))

/** The enabled skills, by URI. */
const enabledSkills = ({ skills }: Pick<Snapshot, 'skills'>): Map<string, BuiltInSkill> =>
  byKey(skills.values(), ({ name }) => skillUri(name))

const isServedOn = ({ global = true, groups = [] }: BuiltInSkill, scope: Parameters<MemberIn>[1]): boolean =>
  scope.kind === 'global' ? global : scope.kind === 'group' && groups.includes(scope.id)
type MemberIn = NonNullable<RegisteredProvider['memberIn']>

/** Selects the skills that a route offers; undefined if there are none. */
export const selectRouteSkills: MemberIn = (snapshot, scope): GroupMember | undefined => {
  if (snapshot.skills.size === 0) return undefined
  const skills = [...enabledSkills(snapshot)].flatMap(([uri, skill]) => isServedOn(skill, scope) ? [uri] : [])
  return skills.length === 0 ? undefined : { name: skillProviderName, skills }
}

/** Provides the built-in skills. */
export class SkillProvider implements Provider {
  readonly name = skillProviderName
  readonly #version: string
  #skills: ReadonlyMap<string, BuiltInSkill> = new Map()
  /** By URI of a file: its skill, and its path in the skill's folder. */
  #files: ReadonlyMap<string, readonly [skill: BuiltInSkill, path: string]> = new Map()
  #catalogue: Catalogue | undefined

  /** @param version the version of the gateway */
  constructor (snapshot: Snapshot, version: string) {
    this.#version = version
    this.update(snapshot)
  }

  /** Applies changed settings. @returns whether the list has changed */
  update (snapshot: Snapshot): boolean {
    this.#skills = enabledSkills(snapshot)
    this.#files = new Map([...this.#skills.values()].flatMap((skill) =>
      Object.keys(skill.files).map((path) => [skillUri(skill.name, path), [skill, path]] as const)))
    const made = makeStaticCatalogue({
      name: skillProviderName, version: this.#version, skills: [...this.#skills.values()].map(entryOf)
    })
    const isSame = this.#catalogue !== undefined && isSameCatalogue(this.#catalogue, made)
    if (!isSame) this.#catalogue = made
    return !isSame
  }

  catalogue (): Catalogue | undefined { return this.#catalogue }
  catalogues (): readonly Catalogue[] { return this.#catalogue === undefined ? [] : [this.#catalogue] }

  async call ({ method, params }: Exchange, changes: Readonly<Record<string, string>>): Promise<Response> {
    if (method !== 'skills/get' && method !== 'resources/read') {
      throw new RpcError(rpcCode.methodNotFound, `Method not found: ${method}`)
    }
    const uri = requestedItemKey(params.uri, changes.uri)
    return { kind: 'response', id: null, resultText: JSON.stringify(this.#resultOf(method, uri)) }
  }

  /** @throws RpcError */
  #resultOf (method: 'skills/get' | 'resources/read', uri: string): object {
    if (method === 'skills/get') {
      const skill = this.#skills.get(uri)
      if (!skill) throw new RpcError(rpcCode.invalidParams, `No skill is served at ${uri}`, 'unknown-resource')
      return { skill: entryOf(skill) }
    }
    const [skill, path] = this.#files.get(uri) ?? []
    if (!skill || path === undefined) {
      throw new RpcError(rpcCode.resourceNotFound, `Resource not found: ${uri}`, 'unknown-resource')
    }
    return toReadResourceResult(uri, path, skill.files[path] ?? '')
  }
}
