# Builds the image of a branch: systemd is not running here.
set -e
dpkg --install /opt/yeolda-agent.deb
# What a technician adds; an enrolment writes such credentials.
cp /opt/settings.toml /etc/yeolda-agent/settings.toml
cp /opt/credentials /etc/yeolda-agent/credentials
chown yeolda-agent: /etc/yeolda-agent/credentials
chmod 600 /etc/yeolda-agent/credentials
echo 'nameserver 127.0.0.2' >/etc/resolv.conf
mkdir -p /etc/systemd/system/yeolda-agent-trial.service.d
printf '[Service]\nEnvironment=YEOLDA_AGENT_TRIAL=20 YEOLDA_AGENT_TRIAL_LIMIT=60\n' >/etc/systemd/system/yeolda-agent-trial.service.d/test.conf
systemctl enable --quiet /opt/yeolda-test-shell.service /opt/yeolda-test-resolver.service
