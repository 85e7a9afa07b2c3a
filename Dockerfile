# An image that serves the runs in /srv/runs:  docker compose up --build, or
#   docker build -t heedful . && docker run -e HEED_API_KEY=... -p 127.0.0.1:8765:8765 -v ./runs:/srv/runs heedful
FROM python:3.12-slim

# The processor's build of torch; for CUDA: --build-arg TORCH=https://download.pytorch.org/whl/cu130
ARG TORCH=https://download.pytorch.org/whl/cpu

WORKDIR /opt/heedful
COPY constraints.txt ./
RUN pip install --no-cache-dir --constraint constraints.txt --index-url "$TORCH" --extra-index-url https://pypi.org/simple torch
COPY pyproject.toml README.md LICENSE ./
COPY heedful heedful
RUN pip install --no-cache-dir --constraint constraints.txt . && rm -r /opt/heedful && useradd --create-home heed

USER heed
WORKDIR /srv
EXPOSE 8765
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/health')"]
ENTRYPOINT ["heed"]
CMD ["serve", "--host", "0.0.0.0"]
