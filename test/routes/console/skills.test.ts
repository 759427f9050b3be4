// Skills in the console: those of a server with their overrides, and built-in ones, which are uploaded.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { mainFile, SkillWorld, startLegacySkills } from '../../fakes/skills.ts'
import { zip } from '../../fakes/zip.ts'
import { fieldsOf, openConnected, openConsole, type Answer } from '../../helpers/console.ts'

void test('skills of a server are listed, read and switched off; a built-in one is uploaded', async (t) => {
  const { url } = await startLegacySkills(t, new SkillWorld({ 'skill://acme/refunds': { 'SKILL.md': mainFile('refunds') } }))
  const group = { id: '33333333-3333-4333-8333-333333333333', name: 'daily', servers: ['fake'] }
  const { app, browser } = await openConnected(t, { fake: { url } }, { groups: [group] }, { REQUEST_TIMEOUT: '10m' })
  const page = `/servers/fake/skills/${encodeURIComponent('skill://acme/refunds/SKILL.md')}`
  assert.match((await browser.get('/servers/fake?view=skills')).text, /skill:\/\/acme\/refunds\/SKILL\.md[\s\S]*How to refunds/)
  assert.match((await browser.get(page)).text, /The skill[\s\S]*Files<\/dt><dd>1/)
  assert.match((await browser.post(page, { do: 'call', mode: 'form' })).text, /# refunds/)
  await browser.post('/servers/fake/items', { kind: 'skills', key: 'skill://acme/refunds/SKILL.md', enabled: 'false' })
  assert.deepEqual(app.settings.current.servers.get('fake')?.config.skills, { 'skill://acme/refunds/SKILL.md': { enabled: false } })

  const csrf = await browser.csrf('/built-ins/skills/upload')
  const send = async (file: Buffer): Promise<Answer> => await browser.upload('/built-ins/skills/upload', csrf, 'skillFile', file)
  assert.match((await send(Buffer.from('x'))).text, /The archive: /)
  const uploaded = await send(zip([{ name: 'notes/SKILL.md', data: mainFile('notes') }]))
  const [id = ''] = [...app.settings.current.skills.keys()]
  assert.equal(uploaded.location, `/console/built-ins/skills/${id}`)
  assert.match((await browser.get('/built-ins')).text, /notes[\s\S]*How to notes[\s\S]*\/mcp/)
  await browser.post(`/built-ins/skills/${id}`, { content: mainFile('notes', 'license: MIT\n'), routes: 'daily' })
  const { global, groups, frontmatter } = app.settings.current.skills.get(id) ?? {}
  assert.deepEqual([global, groups, frontmatter?.license], [false, [group.id], 'MIT'])
  assert.match((await browser.get(`/built-ins/skills/${id}`)).text, /value="daily"/)
  await browser.post(`/built-ins/skills/${id}/remove`, {})
  assert.equal(app.settings.current.skills.size, 0)
})

void test('a saved built-in prompt keeps the titles and descriptions of its arguments', async (t) => {
  const { app, browser } = await openConsole(t)
  const kept = { name: 'x', title: 'The X', description: 'What x means', required: true }
  const odd = [{ name: 'a,b', title: 'Both' }, { name: 'c*', title: 'Starred' }]
  const { id } = (await app.inject({
    method: 'POST',
    url: '/api/prompts',
    headers: { 'x-auth-token': app.auth.createLoginToken(app.users.get('admin') as never) },
    payload: { name: 'ask', template: '{{x}}', arguments: [kept, { name: 'gone' }, ...odd] }
  })).json<{ data: { id: string } }>().data
  const path = `/built-ins/prompts/${id}`
  const fields = fieldsOf(await browser.get(path))
  assert.equal(fields.arguments, 'x*\ngone\na,b\nc*')
  assert.equal((await browser.send(path, fields)).status, 303)
  assert.deepEqual(app.settings.current.prompts.get(id)?.arguments, [kept, { name: 'gone' }, ...odd])
  assert.equal((await browser.send(path, { ...fields, arguments: 'y*, x' })).status, 303)
  const { required: _, ...optional } = kept
  assert.deepEqual(app.settings.current.prompts.get(id)?.arguments, [{ name: 'y', required: true }, optional])
})
