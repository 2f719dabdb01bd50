/** `spillway schema`: prints the JSON Schema of the configuration. */
import { type CommandRow, EXIT, HELP_OPTION } from '../command.js'
import { noArguments, parseArguments } from '../parse-args.js'

export const schemaCommand: CommandRow = {
  name: 'schema',
  summary: 'Print the JSON Schema of configuration files, for editors',
  usage: ['> spillway.schema.json'],
  options: HELP_OPTION,
  notes: `Editors with a YAML language server use the schema named in the configuration:
  # yaml-language-server: $schema=./spillway.schema.json`,
  async run(args) {
    noArguments(parseArguments(args, HELP_OPTION).positionals)
    const { publishedSchema } = await import('../../config/json-schema.js')
    process.stdout.write(publishedSchema())
    return EXIT.ok
  },
}
