import multipart from '@fastify/multipart'
import { chargedOwnerOf, toAuthor } from '../../../plugins/settings/index.ts'
import { Success } from '../../../schemas/answers.ts'
import { UploadedBundle } from '../../../schemas/bundle.ts'
import { SkillRecord } from '../../../schemas/skills.ts'
import { abortSignalOf } from '../../caller.ts'
import { createRequireMultipartHook, uploadOptions } from '../../multipart.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { requirePrincipal } from '../principal.ts'

/** Routes that receive bundles (servers packed into one file) and skills, as multipart forms. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.removeAllContentTypeParsers()
  await app.register(multipart, uploadOptions(0))

  app.post('/mcpb/upload', {
    schema: {
      tags: ['Servers'],
      summary: 'Upload a bundle',
      description:
        'Accepts a `.mcpb` or `.dxt` file as `multipart/form-data`, in the field `mcpbFile`, and stores its files. ' +
        'It stores no server and runs nothing: check `config`, fill in the values that `required` lists, and send it ' +
        'to `POST /api/servers`. A bundle of the same name is replaced; servers that use it run the new version once ' +
        'they are reloaded. A bundle is removed with the last server that uses it.',
      consumes: ['multipart/form-data'],
      response: { 200: Success(UploadedBundle) }
    },
    config: { effect: 'change' },
    onRequest: createRequireMultipartHook('mcpbFile')
  }, async (request, reply) => {
    const principal = requirePrincipal(request)
    const data = await app.bundles.upload(chargedOwnerOf(principal, request.ip), request.parts(), abortSignalOf(reply))
    const { name, manifest, usedBy } = data
    app.audit.addChange(toAuthor(principal), { entity: 'bundle', name, after: { name, manifest, usedBy } })
    const message = [`The bundle ${JSON.stringify(data.name)} is stored`, ...data.warnings].join('. ')
    return { success: true as const, data, message }
  })

  app.post('/skills/upload', {
    schema: {
      tags: ['Built-ins'],
      summary: 'Upload a skill',
      description:
        'Accepts a folder with a `SKILL.md` as a zip archive, in `multipart/form-data`, in the field `skillFile`. It ' +
        'becomes a built-in skill of the global MCP route; `PUT /api/skills/{id}` selects other routes. If a ' +
        'built-in skill of the same name exists, its files are replaced and its routes are kept.',
      consumes: ['multipart/form-data'],
      response: { 200: Success(SkillRecord) }
    },
    config: { effect: 'change' },
    onRequest: createRequireMultipartHook('skillFile')
  }, async (request, reply) => {
    const principal = requirePrincipal(request)
    const files =
      await app.bundles.receiveSkillFolder(chargedOwnerOf(principal, request.ip), request.parts(), abortSignalOf(reply))
    const data = await app.builtIns.skills.put(principal, files)
    return { success: true as const, data, message: `The skill ${JSON.stringify(data.name)} is stored` }
  })
}
export default routes
