// Skills on routes: which server a skill and its files belong to, and what hides them.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { parseSkillFiles } from '../../plugins/gateway/builtins/skill-files.ts'
import { ItemClaimsByServer } from '../../plugins/gateway/claims.ts'
import { childrenIn } from '../../plugins/gateway/methods/skills.ts'
import { foldersAbove, type ViewSection } from '../../plugins/gateway/section.ts'
import { isResourceHidden, findResourceTarget, type Surface } from '../../plugins/gateway/surface.ts'
import { skillFileUris, skillFolder } from '../../protocol/skills.ts'
import { bodyOf, catalogueOf, claimsWith, fold, keys, section } from '../helpers/surface.ts'

/** A skill as servers list it. @param files by their paths in its folder; undefined: its content changes */
const skill = (folder: string, files: string[] | undefined = [], description = 'd'): Record<string, unknown> => ({
  uri: `${folder}/SKILL.md`,
  frontmatter: { name: folder.slice(folder.lastIndexOf('/') + 1), description },
  resources: files === undefined
    ? 'dynamic'
    : ['SKILL.md', ...files].map((path) => ({ uri: `${folder}/${path}`, digest: 'sha256:00', size: 1 }))
})
const readers = (surface: Surface, ...uris: string[]): unknown[] => uris.map((uri) => findResourceTarget(surface, uri)?.provider)

test('a skill arrives as its server wrote it, in the order of servers', async () => {
  const text = '{"x":1e400,"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"d","n":12345678901234567890},' +
    '"resources":[{"uri":"skill://a/SKILL.md","digest":"sha256:00","size":1.0,"y":null}]}'
  const surface = fold([section('one', { skills: [text] }), section('two', { skills: [skill('skill://b')] })])
  assert.equal(await bodyOf(surface, 'skills'), `{"skills":[${text},${JSON.stringify(skill('skill://b'))}]}`)
  assert.deepEqual(await keys(fold([section('two', { skills: [skill('skill://b')] })], { isRaw: true }), 'skills'), ['skill://b/SKILL.md'])
})

test('two skills of one URI: the first server\'s is shown, and all of it is read there', async () => {
  const one = section('one', { skills: [skill('skill://refunds', ['one.md'])] })
  const two = section('two', {
    skills: [skill('skill://refunds', ['two.md']), skill('skill://other', ['deep/x.md'])],
    resources: [{ uri: 'skill://refunds/SKILL.md' }, { uri: 'skill://other/SKILL.md' }]
  })
  const surface = fold([one, two])
  assert.deepEqual(await keys(surface, 'skills'), ['skill://refunds/SKILL.md', 'skill://other/SKILL.md'])
  assert.deepEqual(await keys(surface, 'resources'), ['skill://other/SKILL.md'], 'nothing of the hidden skill is listed')
  assert.deepEqual(readers(surface, 'skill://refunds/SKILL.md', 'skill://refunds/one.md', 'skill://other/deep/x.md'), ['one', 'one', 'two'])
  assert.equal(findResourceTarget(fold([two, one]), 'skill://refunds/SKILL.md')?.provider, 'two')
})

test('a skill with a file of another server is not shown', async () => {
  const a = section('a', { resources: [{ uri: 'skill://s/shared.md' }] })
  const b = section('b', { skills: [skill('skill://s', ['shared.md']), skill('skill://t')] })
  assert.deepEqual(await keys(fold([a, b]), 'skills'), ['skill://t/SKILL.md'])
  assert.deepEqual(await keys(fold([b, a]), 'skills'), ['skill://s/SKILL.md', 'skill://t/SKILL.md'])
  assert.deepEqual(await keys(fold([b, a]), 'resources'), [], 'the file belongs to the skill')
  // A manifest gives no right to what is outside of its folder.
  const greedy = section('g', { skills: [{ ...skill('skill://g'), resources: [{ uri: 'note://x' }, { uri: 'skill://gg/x' }] }] })
  assert.deepEqual(await keys(fold([greedy, section('n', { resources: [{ uri: 'note://x' }, { uri: 'skill://gg/x' }] })]), 'resources'), ['note://x', 'skill://gg/x'])
})

test('a user\'s server takes no skill, and no file of one, from an admin\'s', async () => {
  const owner = { config: { owner: 'ann' } }
  const admin = { skills: [skill('skill://s', ['a.md'])], resourceTemplates: [{ uriTemplate: 'skill://papers/{+path}' }] }
  const users = {
    skills: [skill('skill://s'), skill('skill://papers/x'), skill('skill://own')],
    resources: [{ uri: 'skill://s/a.md' }, { uri: 'skill://s/new.md' }]
  }
  for (const sections of [
    [section('a', admin), section('u', users, owner)]
  ]) {
    const surface = fold(sections)
    assert.deepEqual(await keys(surface, 'skills'), ['skill://s/SKILL.md', 'skill://own/SKILL.md'])
    assert.deepEqual(await keys(surface, 'resources'), [])
    assert.deepEqual(readers(surface, 'skill://s/a.md', 'skill://s/new.md', 'skill://own/x'), ['a', 'a', 'u'])
  }
})

test('what comes later takes nothing, and a server keeps its skills while it is away', async () => {
  const claimsOf = claimsWith(new ItemClaimsByServer())
  const [a, b] = [section('a', undefined), section('b', undefined)]
  const at = (ofA: ViewSection['catalogue'], ofB: ViewSection['catalogue']): Surface =>
    fold([{ ...a, catalogue: ofA }, { ...b, catalogue: ofB }], { claimsOf })
  const none = catalogueOf({})
  const s = catalogueOf({ skills: [skill('skill://s', ['x.md'])] })
  assert.deepEqual(readers(at(none, s), 'skill://s/x.md'), ['b'])
  const both = at(catalogueOf({ skills: [skill('skill://s', ['x.md'])] }), s)
  assert.deepEqual(readers(both, 'skill://s/SKILL.md', 'skill://s/x.md'), ['b', 'b'])
  assert.equal((await keys(both, 'skills')).length, 1)
  // `b` has stopped listing it: `a` does not get the name.
  assert.deepEqual(await keys(at(catalogueOf({ skills: [skill('skill://s', ['x.md'])] }), none), 'skills'), [])
})

test('unlisted files are read where the skill is, before the templates of others', async () => {
  const catchAll = { resourceTemplates: [{ uriTemplate: 'skill://{+path}' }] }
  const surface = fold([
    section('a', { ...catchAll, skills: [skill('skill://a')] }),
    section('b', { ...catchAll, skills: [skill('skill://b', undefined), skill('skill://a/nested', ['n.md'])] })
  ])
  assert.deepEqual(
    readers(surface, 'skill://a/new.md', 'skill://b/any/where.md', 'skill://b/', 'skill://a/nested/n.md', 'skill://a/nested/other', 'skill://c/x'),
    ['a', 'b', 'b', 'b', 'b', 'a']
  )
})

test('a skill that is disabled or not selected takes its files with it', async () => {
  const lists = {
    skills: [skill('skill://a', ['x.md', 'in/SKILL.md']), skill('skill://a/in'), skill('skill://b', undefined), skill('skill://c')],
    resources: [{ uri: 'skill://a/SKILL.md' }, { uri: 'skill://b/SKILL.md' }, { uri: 'skill://c/SKILL.md' }, { uri: 'note://n' }]
  }
  const hiddenIn = (surface: Surface, ...uris: string[]): boolean[] => uris.map((uri) => isResourceHidden(surface, 's', uri))
  for (const isRaw of [true, false]) {
    const off = fold([section('s', lists, { config: { skills: { 'skill://b/SKILL.md': { enabled: false } } } })], { isRaw })
    assert.deepEqual(await keys(off, 'skills'), ['skill://a/SKILL.md', 'skill://a/in/SKILL.md', 'skill://c/SKILL.md'])
    assert.deepEqual(await keys(off, 'resources'), ['skill://a/SKILL.md', 'skill://c/SKILL.md', 'note://n'])
    assert.deepEqual(
      hiddenIn(off, 'skill://b/SKILL.md', 'skill://b/x', 'skill://b/./c/../x', 'skill://b', 'skill://b//x', 'skill://B/x', 'skill://a/x.md', 'skill://bb/x'),
      [true, true, true, true, true, true, false, false]
    )
    const chosen = fold([section('s', lists, { member: { skills: ['skill://a/SKILL.md'], resources: [] } })], { isRaw })
    assert.deepEqual(await keys(chosen, 'skills'), ['skill://a/SKILL.md'])
    assert.deepEqual(await keys(chosen, 'resources'), [], 'which resources are listed, their own selection says')
    assert.deepEqual(
      hiddenIn(chosen, 'skill://a/SKILL.md', 'skill://a/in/SKILL.md', 'skill://c/SKILL.md', 'note://n'),
      [false, false, true, true], 'a nested skill is part of the one around it'
    )
    if (!isRaw) assert.deepEqual(readers(chosen, 'skill://a/x.md', 'skill://c/SKILL.md'), ['s', undefined])
  }
  const described = fold([section('s', lists, { config: { skills: { 'skill://c/SKILL.md': { description: 'ours' } } } })])
  const body = JSON.parse(await bodyOf(described, 'skills')) as { skills: unknown[] }
  assert.deepEqual(body.skills[3], { ...skill('skill://c'), description: 'ours' }, 'clients compare the frontmatter with the file')
  // An admin's disabled skill does not come back by a user's server.
  const shadow = fold([
    section('s', lists, { config: { skills: { 'skill://c/SKILL.md': { enabled: false } } } }),
    section('u', { skills: [skill('skill://c')] }, { config: { owner: 'ann' } })
  ])
  assert.ok(!(await keys(shadow, 'skills')).includes('skill://c/SKILL.md'))
})

test('a route announces skills where a server has them, and what any of its servers can', async () => {
  const extension = (settings: object): object => ({ capabilities: { resources: {}, extensions: { 'io.modelcontextprotocol/skills': settings } } })
  const announced = (...servers: object[]): unknown =>
    (fold(servers.map((more, at) => section(`s${at}`, {}, more))).announced.extensions as Record<string, unknown> | undefined)?.['io.modelcontextprotocol/skills']
  assert.equal(announced({}), undefined)
  assert.deepEqual(announced({}, extension({})), {})
  assert.deepEqual(announced(extension({ directoryRead: true }), extension({})), { directoryRead: true })
  assert.deepEqual(announced(extension({ directoryRead: false }), extension({ directoryRead: true })), { directoryRead: true })
})

test('the files of any manifests, on any servers: what is shown is read at the server that shows it', async () => {
  const name = fc.constantFrom('a', 'b', 'a/b', 'c', '%20', 'é')
  const path = fc.constantFrom('x.md', 'b/SKILL.md', 'b/y', 'SKILL.md', '../x', '')
  const anySkill = fc.record({ folder: name, files: fc.option(fc.array(path, { maxLength: 4 }), { nil: undefined }) })
  const server = fc.record({
    skills: fc.array(anySkill, { maxLength: 4 }),
    resources: fc.array(fc.tuple(name, path), { maxLength: 4 }),
    templates: fc.array(fc.constantFrom('skill://{+p}', 'skill://a/{x}', 'skill://b{+x}'), { maxLength: 2 }),
    owner: fc.constantFrom('admin', 'ann'),
    off: fc.array(name, { maxLength: 1 })
  })
  await fc.assert(fc.asyncProperty(fc.array(server, { minLength: 1, maxLength: 4 }), async (servers) => {
    const made = [...servers].sort((one, other) => one.owner.localeCompare(other.owner)).map((each, at) => section(`s${at}`, {
      skills: each.skills.map(({ folder, files }) => skill(`skill://${folder}`, files)),
      resources: each.resources.map(([folder, file]) => ({ uri: `skill://${folder}/${file}` })),
      resourceTemplates: each.templates.map((uriTemplate) => ({ uriTemplate }))
    }, { config: { owner: each.owner, skills: Object.fromEntries(each.off.map((folder) => [`skill://${folder}/SKILL.md`, { enabled: false }])) } }))
    const surface = fold(made)
    for (const { provider, item } of surface.parts.skills.targets.values()) {
      for (const file of item === undefined ? [] : skillFileUris(item)) {
        // A file of a skill that is shown may be that of a nested skill, which is disabled.
        assert.equal(findResourceTarget(surface, file)?.provider, provider, `${file} of ${item?.key}`)
        assert.equal(isResourceHidden(surface, provider, file), false, file)
      }
    }
    for (const { server: { name: at, config }, catalogue } of made) {
      const listed = (catalogue?.lists.skills ?? []).map(({ key }) => key)
      const isOff = (key: string): boolean => config.skills?.[key]?.enabled === false
      // Also where a clash keeps the skill around it out of the list.
      const enabled = listed.filter((key) => !isOff(key)).map((key) => String(skillFolder(key)))
      for (const key of listed.filter(isOff)) {
        const isInside = enabled.some((folder) => foldersAbove(key).includes(folder))
        assert.ok(isInside || findResourceTarget(surface, key)?.provider !== at, `${key} is off at ${at}`)
      }
    }
  }), { numRuns: 1_000 })
})

test('the folders of a URI, and what is in a folder', async () => {
  assert.deepEqual(foldersAbove('skill://a/b/c.md?x=/y#z/'), ['skill://a/b/c.md', 'skill://a/b', 'skill://a'])
  assert.deepEqual(foldersAbove('skill://a'), ['skill://a'])
  assert.deepEqual(foldersAbove('skill:a/b'), ['skill:a/b', 'skill:a'])
  assert.equal(foldersAbove(`skill://${'a/'.repeat(5_000)}`).length, 100)
  for (const [uri, folder] of [['skill://a/SKILL.md', 'skill://a'], ['/SKILL.md', undefined], ['skill://a/skill.md', undefined], ['note:a', undefined]] as const) {
    assert.equal(skillFolder(uri), folder)
  }
  assert.deepEqual(childrenIn(['s://a/x.md', 's://a/d/y.md', 's://a/d/z', 's://ab/n'], 's://a'), [
    { uri: 's://a/x.md', name: 'x.md' }, { uri: 's://a/d', name: 'd', mimeType: 'inode/directory' }
  ])
})

test('a file of a built-in skill is base64, and may have megabytes', async () => {
  const main = Buffer.from('---\nname: a\ndescription: d\n---\n').toString('base64')
  const large = Buffer.alloc(8 * 1024 * 1024, 1).toString('base64')
  for (const content of ['', 'AAAA', 'AAA=', 'AA==', '+/+/AA==', large]) {
    const { files } = await parseSkillFiles({ 'SKILL.md': main, 'x.bin': content })
    assert.equal(files['x.bin'], content)
  }
  for (const content of ['A', 'AA', 'AAA', 'AA=', 'A===', '====', 'AA==AAAA', 'AA A', 'AA-_', `${large.slice(1)}!`]) {
    await assert.rejects(parseSkillFiles({ 'SKILL.md': main, 'x.bin': content }), { code: 'TH_INVALID_INPUT' }, content.slice(0, 9))
  }
})
