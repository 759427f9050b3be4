import type { Snapshot } from '../../../db/store.ts'
import type { BuiltInSkill, NewSkill, SkillRecord, SkillUpdate } from '../../../schemas/skills.ts'
import { errors } from '../../base/errors/index.ts'
import { findGroupByName, type Principal, type Settings } from '../../settings/index.ts'
import type { Gateway } from '../gateway.ts'
import { BuiltInEntries, type BuiltInKindDefinition } from './entries.ts'
import { fileDigestAndSize, skillMainFile, parseSkillFiles, skillUri, skillUris } from './skill-files.ts'

const toBase64 = (text: string): string => Buffer.from(text).toString('base64')

const skillKind: BuiltInKindDefinition<BuiltInSkill, SkillRecord> = {
  list: 'skills',
  // The files of a skill are resources.
  claims: 'resources',
  noun: 'skill',
  members: ['name', 'frontmatter', 'files', 'global', 'groups', 'enabled'],
  stored: ({ skills }) => skills,
  change: (key, value) => ({ entity: 'skills', key, value }),
  keyOf: ({ name }) => skillUri(name),
  keysOf: skillUris,
  otherKeys: ({ resources }) => [...resources.values()].map(({ uri }) => uri),
  check: () => {},
  show: ({ id, name, frontmatter, files, global = true, groups = [], enabled = true }) => ({
    id,
    uri: skillUri(name),
    name,
    description: String(frontmatter.description),
    content: Buffer.from(files[skillMainFile] ?? '', 'base64').toString(),
    files: Object.entries(files).map(([path, base64]) => ({ path, ...fileDigestAndSize(base64) })),
    global,
    groups,
    enabled
  })
}

/** Manages the built-in skills. Routes must restrict writing to admins. */
export class BuiltInSkills {
  readonly #settings: Settings
  readonly #entries: BuiltInEntries<BuiltInSkill, SkillRecord>

  constructor (settings: Settings, gateway: Pick<Gateway, 'surface'>) {
    this.#settings = settings
    this.#entries = new BuiltInEntries(settings, gateway, skillKind)
  }

  /** Lists all skills, including disabled ones, in the configured order. */
  list (): SkillRecord[] { return this.#entries.list() }

  /** @throws NoSuch */
  get (id: string): SkillRecord { return this.#entries.get(id) }

  /** @throws InvalidInput, Duplicate, LimitReached */
  async create (principal: Principal, { content, files = {}, ...routes }: NewSkill): Promise<SkillRecord> {
    const own = await parseSkillFiles({ [skillMainFile]: toBase64(content), ...withoutMain(files) })
    return await this.#entries.create(principal, { ...own, ...this.#withGroupIds(routes) })
  }

  /** Changes the members in `change`, and keeps the others. @throws NoSuch, InvalidInput, Duplicate, LimitReached */
  async update (principal: Principal, id: string, change: SkillUpdate): Promise<SkillRecord> {
    const { content, files, ...routes } = change
    const own = content === undefined && files === undefined
      ? {}
      : await parseSkillFiles(changedFiles(this.#settings.current.skills.get(id)?.files ?? {}, change))
    const { skills, groups } = this.#settings.current
    // A skill keeps the ids of removed groups, so a client that sends back its groups may name them.
    const removed = new Set(skills.get(id)?.groups?.filter((each) => !groups.has(each)))
    const left = routes.groups === undefined ? {} : { groups: routes.groups.filter((each) => !removed.has(each)) }
    return await this.#entries.update(principal, id, { ...own, ...this.#withGroupIds({ ...routes, ...left }) })
  }

  /**
   * Stores the skill in an uploaded folder. An existing skill of the same name gets these files and keeps its routes.
   * @param files the contents in base64, by path
   * @throws InvalidInput, Duplicate, LimitReached
   */
  async put (principal: Principal, files: Readonly<Record<string, string>>): Promise<SkillRecord> {
    const own = await parseSkillFiles(files)
    const former = [...this.#settings.current.skills.values()].find(({ name }) => name === own.name)
    return former
      ? await this.#entries.update(principal, former.id, own)
      : await this.#entries.create(principal, own)
  }

  /** @throws NoSuch */
  async remove (principal: Principal, id: string): Promise<void> { await this.#entries.remove(principal, id) }

  /** Replaces names of groups by ids. @throws InvalidInput if a group does not exist */
  #withGroupIds <Routes extends { groups?: string[] }> (routes: Routes): Routes {
    if (routes.groups === undefined) return routes
    return { ...routes, groups: [...new Set(routes.groups.map((each) => groupId(this.#settings.current, each)))] }
  }
}

/** @throws InvalidInput */
function groupId (snapshot: Snapshot, idOrName: string): string {
  const group = snapshot.groups.get(idOrName) ?? findGroupByName(snapshot, idOrName)
  if (!group) throw new errors.InvalidInput(`"groups": there is no group ${JSON.stringify(idOrName)}`)
  return group.id
}

const withoutMain = (files: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).filter(([path]) => path !== skillMainFile))

/**
 * The files of a skill after a change: without `content`, `SKILL.md` stays the same; without `files`, the other files
 * stay the same.
 */
function changedFiles (
  former: Readonly<Record<string, string>>, { content, files = withoutMain(former) }: SkillUpdate
): Record<string, string> {
  const main = content === undefined ? former[skillMainFile] ?? '' : toBase64(content)
  return { [skillMainFile]: main, ...withoutMain(files) }
}
