# Source this file: . ./env.sh
# It points the vendors' SDKs, Claude Code and Codex at a gateway on this machine.
export OPENAI_BASE_URL=http://127.0.0.1:4000/v1
export OPENAI_API_KEY=sk-demo
export ANTHROPIC_BASE_URL=http://127.0.0.1:4000
export ANTHROPIC_AUTH_TOKEN=sk-demo
export ANTHROPIC_MODEL=demo
export ANTHROPIC_DEFAULT_OPUS_MODEL=demo
export ANTHROPIC_DEFAULT_SONNET_MODEL=demo
export ANTHROPIC_DEFAULT_HAIKU_MODEL=demo
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
export GATEWAY_KEY=sk-demo # what config.toml for Codex reads
